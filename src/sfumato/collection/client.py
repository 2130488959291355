"""What runs on the person's device: numpy and cryptography, nothing heavier."""
