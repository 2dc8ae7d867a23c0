"""Publishing: turn reviewed drafts into a runnable benchmark folder and a data set for others."""
