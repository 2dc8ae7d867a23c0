"""PunMemeCN: Chinese pun memes, their hard-negatives, sentiments and chats."""
