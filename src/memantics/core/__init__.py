"""Records, errors, storage, bounded images, text and data readers that every other package uses.

It imports no other package of Memantics.
"""
