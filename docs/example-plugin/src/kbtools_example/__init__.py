"""Plugins for kbtools, as anyone can package them."""
