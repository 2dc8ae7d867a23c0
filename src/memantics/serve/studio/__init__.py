"""The studio: a page on which a person looks at one meme."""
