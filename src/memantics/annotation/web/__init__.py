"""The web pages of the annotation app."""
