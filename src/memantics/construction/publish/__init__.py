"""Publishing: turn reviewed drafts into a runnable benchmark folder and a shareable data set."""
