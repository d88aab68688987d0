"""From a question, a name or a text to records."""
