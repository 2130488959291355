"""Tables that Spark holds: the same kernels in its tasks."""
