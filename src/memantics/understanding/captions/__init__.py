"""Caption mining: what a meme's words mean and its image shows, by any model, with provenance."""
