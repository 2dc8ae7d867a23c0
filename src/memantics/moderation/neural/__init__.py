"""Neural detectors of harmful memes (extra ``detector``); exported ones run without PyTorch."""
