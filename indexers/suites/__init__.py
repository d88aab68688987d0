"""Contract suites of backends and readers."""
