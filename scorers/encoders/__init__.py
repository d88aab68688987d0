"""Pretrained encoders of sentences as relation scorers."""
