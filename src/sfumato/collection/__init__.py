"""Collection without trust: answers are randomized on the person's device.

Nothing here yet but the walls: ``client`` and ``messages`` must stay light.
"""
