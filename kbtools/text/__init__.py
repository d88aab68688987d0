"""Words: normal forms, tokens, n-grams, and the rungs between words of a question and a name."""
