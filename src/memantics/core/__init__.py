"""Records, errors, file storage, image, text and data readers that every other package uses.

The package ``core`` imports no other package of Memantics.
"""
