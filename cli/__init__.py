"""The commands: words in, words out."""
