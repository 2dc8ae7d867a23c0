"""Offer every evaluation task to the Inspect framework: ``inspect eval memantics/mquest_qa``."""
