"""Studies of detectors: variants trained on the same data, tested once, and compared."""
