"""Source texts, places in them, and what is to be said about those places."""
