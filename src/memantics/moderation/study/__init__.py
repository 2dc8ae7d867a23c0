"""Studies of detectors: many variants trained alike on the same memes, tested once, compared."""
