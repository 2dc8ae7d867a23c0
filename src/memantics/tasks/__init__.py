"""Pieces from which tasks are made: parsers, prompts, options."""
