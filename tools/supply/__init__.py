"""What sfumato is made of and how it is built: the parts of ``tools/supply_chain.py``."""
