"""Homophones: what a caption may mean when it is read aloud."""
