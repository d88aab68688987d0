"""Linking: from the words of a question to the entities with that name, strictly, then fuzzily."""
