"""Comparison: the accuracy of pruners and scorers on a knowledge base and questions, with confidence intervals."""
