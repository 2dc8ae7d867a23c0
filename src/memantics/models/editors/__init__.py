"""Editors of pictures behind one protocol: an HTTP endpoint, or a pipeline in a local folder."""
