"""Offer every task as an Inspect task: ``inspect eval memantics/mquest_qa --model …``."""
