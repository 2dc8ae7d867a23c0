"""The parts of ``analyze``: text, image content, meaning, intent, emotion and harm of one meme."""
