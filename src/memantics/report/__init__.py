"""Scores to tables, plots and one self-contained page."""
