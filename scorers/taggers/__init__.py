"""Taggers that find the mention of a question."""
