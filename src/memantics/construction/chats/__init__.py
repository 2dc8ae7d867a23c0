"""Chats that end in a meme: written by a model, kept within rules, with near wrong answers."""
