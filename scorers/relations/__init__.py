"""Relation scorers, v(r, q) of the paper."""
