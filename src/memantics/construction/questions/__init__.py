"""Questions grounded in what is known about memes, with a critic that sends them back."""
