"""Drafts of the intents of a meme, and of the background knowledge that it needs."""
