"""Audits: what a benchmark measures besides what it means to measure."""
