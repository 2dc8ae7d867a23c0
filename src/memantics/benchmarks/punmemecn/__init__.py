"""PunMemeCN: Chinese pun memes, their look-alikes, sentiments and chats."""
