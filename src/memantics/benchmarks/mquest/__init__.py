"""M-QUEST: multiple-choice questions on ten dimensions of a meme's meaning, and knowledge bases."""
