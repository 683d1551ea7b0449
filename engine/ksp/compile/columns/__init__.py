"""The second form of a rule: one function over NumPy columns of many nodes. Its code, and what that code calls."""
