"""Performance measurements with targets; ``python -m perf`` runs them."""
