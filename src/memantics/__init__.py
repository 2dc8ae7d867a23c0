"""Memantics: a workbench for computational meme understanding."""

__version__ = "0.1.0"
