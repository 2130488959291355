"""The experiments of the founding documents: generators, data readers, PNCF as published."""
