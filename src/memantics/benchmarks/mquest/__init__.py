"""M-QUEST: questions about memes over ten dimensions of meaning, and their knowledge bases."""
