"""The folder of a knowledge base: its format and how it is read."""
