"""Asking and scoring."""
