"""Comparison: which pruner and which scorers for a knowledge base and its questions, and by how much."""
