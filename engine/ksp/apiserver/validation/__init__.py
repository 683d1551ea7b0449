"""What may stand in an object, in the words of the real server."""
