"""Multiple-choice questions grounded in knowledge about memes, checked by a critic."""
