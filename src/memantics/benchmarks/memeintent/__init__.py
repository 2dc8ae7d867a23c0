"""MemeIntent: intents of meme authors as free text, background knowledge, image descriptions."""
