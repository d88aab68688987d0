"""The networks of scorers and taggers, and what they share."""
