"""Answers from other tools, and tasks for other tools to ask."""
