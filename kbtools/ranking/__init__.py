"""Ranking: the contracts of scorers, pools of candidates, their score, its weights, and trained models."""
