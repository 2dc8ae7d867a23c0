"""Collection: read a folder of images, find duplicates and templates, filter by rules."""
