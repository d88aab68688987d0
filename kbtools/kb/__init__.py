"""The contract of a knowledge base, its ids, its manifest and its vectors."""
