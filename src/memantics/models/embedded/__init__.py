"""``embedded/reader``: an offline, deterministic baseline for every type of task; not a VLM."""
