"""PunMemeCN: Chinese pun memes with hard negatives, sentiments and chats."""
