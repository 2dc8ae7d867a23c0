"""Homophone readings: what a caption may mean by its sound, and pun detection."""
