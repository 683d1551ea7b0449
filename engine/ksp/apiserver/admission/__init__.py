"""Admission plugins that are always on."""
