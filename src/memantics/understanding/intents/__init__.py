"""Drafts of why a meme was made, and of what one must know to see it."""
