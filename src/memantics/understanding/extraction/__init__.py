"""Knowledge from memes: one structured call for each dimension, in a declared order."""
