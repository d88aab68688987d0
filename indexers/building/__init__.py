"""The build of a knowledge base from its sources."""
