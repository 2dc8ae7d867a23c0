"""Policies: write, check and compare policy files, test models on them, and show them to people."""
