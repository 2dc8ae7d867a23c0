"""MemeIntent: what the author of a meme wants to say, in words."""
