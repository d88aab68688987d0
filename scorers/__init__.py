"""Networks and baselines that score relations and subjects, as plugins."""
