"""Runs the core against a cluster."""
