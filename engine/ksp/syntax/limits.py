"""How large and how deep a text may be. Checked while the tree is built, so that no later pass meets a tree that is too
deep for recursion or for Python's own compiler."""

from __future__ import annotations

MAX_TOKENS = 50_000
MAX_DECLARATIONS = 1_000
MAX_ERRORS = 100
"""Syntax errors of one file after which nothing more is looked for."""

MAX_DEPTH = 64
"""Brackets open at one place: `(`, `[` and `{` together."""

MAX_COST = 210
"""Height of an expression, where each step down costs NESTING_COST, but the left side of an operator only one: a sum of
two hundred terms is as high as seventy nested calls. No expression tree is more than this many nodes high."""

NESTING_COST = 3
MAX_BLOCKS = 8
"""`for`, `collect` and other blocks inside one another, that of the rule included."""

MAX_TYPE_DEPTH = 8
MAX_NUMBER_LENGTH = 40
"""Characters of one number: more are never meant, and are slow to convert."""
