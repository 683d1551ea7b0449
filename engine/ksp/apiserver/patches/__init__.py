"""The three kinds of patches."""
