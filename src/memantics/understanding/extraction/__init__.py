"""Knowledge extraction from memes: one structured call per dimension, in a declared order."""
