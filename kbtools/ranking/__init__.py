"""Ranking: what scorers are, pools of candidates, their score, its weights, and the models behind it."""
