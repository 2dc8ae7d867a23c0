"""Experiments on the development data, under the protocol of ``docs/research/protocol.md``."""
