"""Detectors of harmful memes: from a fast linear one to a network, each with its evidence."""
