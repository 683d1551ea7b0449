"""kubectl's tables."""
