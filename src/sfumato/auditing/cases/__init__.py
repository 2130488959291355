"""What is audited: one file for each family of mechanisms and verbs."""
