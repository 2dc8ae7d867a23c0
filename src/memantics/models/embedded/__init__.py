"""``embedded/reader``: a small offline, deterministic baseline for every task type; not a VLM."""
