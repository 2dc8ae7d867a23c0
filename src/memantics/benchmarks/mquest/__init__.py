"""M-QUEST: multiple-choice questions on ten dimensions of meme meaning, and knowledge bases."""
