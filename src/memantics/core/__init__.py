"""Records, cards, prompts, stores, errors and bounded images. Imports nothing of ours."""
