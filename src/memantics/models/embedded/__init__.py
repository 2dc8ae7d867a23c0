"""``embedded/reader``: an offline, deterministic baseline for every kind of task; not a VLM."""
