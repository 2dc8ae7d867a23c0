"""MemeIntent: free-text intents of meme authors, background knowledge and image descriptions."""
