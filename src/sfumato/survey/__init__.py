"""Collection without trust: answers are randomized on the person's device.

``client`` and ``messages`` are the device's half and stay light; ``server`` counts and estimates;
``questions`` joins both halves for Python users. Import from the modules: a device needs one.
"""
