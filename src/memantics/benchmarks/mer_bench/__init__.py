"""MER-Bench: turning a negative meme into a positive one, and judging how well that went."""
