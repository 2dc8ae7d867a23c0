"""Minimal pairs: memes that differ in one thing, from templates of functional tests."""
