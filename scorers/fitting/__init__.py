"""The training of every network."""
