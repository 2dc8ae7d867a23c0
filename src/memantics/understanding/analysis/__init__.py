"""One meme, everything at once: what it says, shows, means, intends, and whom it may hurt."""
