"""Networks that detect harmful memes (extra ``detector``); exported ones need no PyTorch."""
