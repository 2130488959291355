"""What fake answers gain, and the traces they leave."""
