"""The fonts that captions are set in."""
