"""Decisions as records: an append-only log, appeals, webhooks, explanations and exports."""
