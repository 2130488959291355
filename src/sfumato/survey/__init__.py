"""Collection without trust: answers are randomized on the person's device.

``device`` and ``protocol`` are the device's half and stay light; ``estimate`` counts and estimates,
its ``question`` joins both halves for Python users. Import from the modules: a device needs one.
"""
