"""The folder of a knowledge base: its format and its readers."""
