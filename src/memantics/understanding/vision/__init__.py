"""Image analysis and typesetting without a model: panels, captions, letters, fonts and layout."""
