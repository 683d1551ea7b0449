"""Kubernetes objects as values: what scheduling reads of them, and what follows from one object alone."""
