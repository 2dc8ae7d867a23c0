"""Reappraisal: turn a negative meme into a kinder one, with its layout kept.

The three stages are the emotion of the meme, a plan, and the new image. Each ends in a file that
a person can correct before the next stage begins.
"""
