"""Audit checks: shortcuts, leaks, blind answers, option order, label errors, impossible tables."""
