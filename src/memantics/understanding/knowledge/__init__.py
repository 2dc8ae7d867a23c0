"""Knowledge about memes: records, a store, reading and writing, checks, figures and drawings."""
