"""The networks of scorers and taggers, and their shared parts."""
