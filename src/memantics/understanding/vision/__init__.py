"""What can be told from a meme's pixels without a model: panels, caption regions, layout."""
