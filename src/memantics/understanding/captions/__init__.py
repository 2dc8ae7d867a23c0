"""What the words of a meme mean and what its picture shows, by any model, with provenance."""
