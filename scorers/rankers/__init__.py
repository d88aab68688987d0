"""Learned rankers of candidates."""
