"""Local mechanisms: answers that are randomized on the person's device.

Every mechanism is finite (but for the discrete Laplace, which is cut to a public range), its
probabilities are whole numbers, and the same integers are read by the device (one answer, plain
Python), the bulk kernels, the server's estimates and the tests. Reading order: probabilities,
layout, mechanism, grr, then any. Import from the modules: a device needs one.
"""
