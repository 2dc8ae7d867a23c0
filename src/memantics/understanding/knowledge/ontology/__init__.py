"""What can be said about a meme: our ontology (``meme.ttl``), its shapes, and its vocabulary."""
