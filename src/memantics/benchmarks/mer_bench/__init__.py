"""MER-Bench: reappraisal of negative memes into positive ones, and ratings of the results."""
