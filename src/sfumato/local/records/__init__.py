"""Several attributes of one record."""
