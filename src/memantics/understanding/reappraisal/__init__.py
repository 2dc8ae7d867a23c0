"""Reappraisal: turn a negative meme into a kinder one, with its layout kept.

The three stages determine the emotion of the meme, a plan, and the new image. Each stage writes a
file that a person can correct before the next stage begins.
"""
