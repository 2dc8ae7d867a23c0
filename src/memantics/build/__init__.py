"""From memes to knowledge, questions, intents and chats, and on to a published benchmark."""
