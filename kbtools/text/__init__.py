"""Words: normal forms, tokens, n-grams, and the rungs between a question's words and a name."""
