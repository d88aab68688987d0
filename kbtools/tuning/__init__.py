"""The fit of weights, rankers and cascades on questions with known answers."""
