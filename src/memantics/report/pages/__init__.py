"""Whole pages for people: one module per page, with its template."""
