"""Experiments on the development data, measured as ``docs/research/protocol.md`` describes."""
