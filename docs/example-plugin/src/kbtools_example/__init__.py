"""Relation scorers for kbtools, as anyone can package them."""
