"""What every web app of ours stands on: server, headers, limits, logs, templates, words, style."""
