"""One folder each: card, reader, tasks, prompts, sample."""
