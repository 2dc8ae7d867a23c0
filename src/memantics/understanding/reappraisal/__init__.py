"""Reappraisal: a negative meme turned around, with its layout kept by construction.

Three stages: what a meme feels like, a plan to turn it around, and the new picture. Each ends in
a file that a person can correct before the next one begins.
"""
