"""Knowledge about memes: records, store, readers and writers, queries, validation and drawings."""
