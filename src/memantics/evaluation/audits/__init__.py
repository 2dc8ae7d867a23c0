"""Audit checks: shortcuts, leaks, answers without the image, option order, label errors, tables."""
