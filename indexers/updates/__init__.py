"""Updates of a knowledge base: changes are read, written as a segment beside its base, and merged."""
