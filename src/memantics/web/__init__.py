"""Code shared by the web apps: server, headers, limits, logs, templates, messages and styles."""
