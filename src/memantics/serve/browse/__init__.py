"""Browsing: a knowledge store and a folder of runs, read-only."""
