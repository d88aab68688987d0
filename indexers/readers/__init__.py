"""Readers of the files that knowledge bases come in, as streams of Arrow tables."""
