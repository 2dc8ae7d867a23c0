"""Whatever answers requests."""
