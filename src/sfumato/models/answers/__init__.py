"""From randomized answers to frequencies, pairs and models."""
