"""What both web apps share: server, headers, limits, logs, templates, messages and styles."""
