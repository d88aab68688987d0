"""Subject scorers, u(s, r, q) of the paper."""
