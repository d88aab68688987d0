"""Vectors of entities."""
