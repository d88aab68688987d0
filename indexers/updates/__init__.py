"""Updates of a knowledge base: changes are read, written as a segment over its base, and merged."""
