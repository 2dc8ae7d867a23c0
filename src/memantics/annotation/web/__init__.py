"""The pages on which people annotate."""
