"""Requests and answers: the client, its connections, limits, repeats, and streams of lines."""
