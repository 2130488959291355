"""Key-value data: who has a key, and which value."""
