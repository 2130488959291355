"""Readers: files, frames, databases and Spark as Arrow batches of raw values."""
