"""Clusters that run in virtual time: what is read from files, and what drives the core without a network."""
