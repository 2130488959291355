"""A person's device: it randomizes answers and keeps its own ledger."""
