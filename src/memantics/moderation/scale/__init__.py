"""Sharded work over many memes: sources, shards, a manifest, and engines that run shards."""
