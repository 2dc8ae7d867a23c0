"""Benchmarks, one folder each (card, reader, writer, tasks, prompts, sample), and the registry."""
