"""Linking: from the words of a question to the entities that bear them as a name, strictly, then fuzzily."""
