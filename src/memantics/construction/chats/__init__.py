"""Chats that end in a meme: generation by a model, rules, selection and hard distractors."""
