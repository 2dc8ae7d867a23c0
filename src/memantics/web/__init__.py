"""Shared parts of both web apps: server, headers, limits, logs, templates, messages and styles."""
