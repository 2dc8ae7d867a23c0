"""The ontology of memes (``meme.ttl``), its SHACL shapes, and its vocabulary."""
