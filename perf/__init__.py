"""Measurements that the project promises to keep; ``python -m perf`` runs them."""
