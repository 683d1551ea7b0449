"""The keywords of the language by what they do: for error recovery, and for what may not be a name.

The parser takes each of them for an ordinary name where the grammar allows only a name, as in `node.score`.
"""

from __future__ import annotations

DECLARATIONS = frozenset({"import", "const", "fn", "predicate", "priority", "provider", "profile", "test"})

STATEMENTS = frozenset(
    {"const", "fn", "param", "let", "view", "deny", "fail", "stop", "for", "collect", "prefilter", "prescore"}
    | {"score", "normalize", "return"}
)

CLAUSES = frozenset({"when", "where", "by", "in", "implements", "extends", "uses", "true", "false"})

RESERVED = DECLARATIONS | STATEMENTS | CLAUSES | {"null"}
"""Names that nothing can be given."""

RESUME = STATEMENTS | {"expect", "predicates", "priorities"}
"""Keywords with which the parser can go on after an error, where they are the first of their line."""

STOPS = (DECLARATIONS | STATEMENTS | CLAUSES) - {"true", "false"}
"""Keywords that are never the name of an expression, so that a missing operand is found where it is missing."""

SOFT = frozenset(
    {"count", "sum", "first", "unresolvable", "reversed", "predicates", "priorities", "expect", "on", "from", "with"}
    | {"admits", "denies", "scores", "places"}
)
"""Keywords in one place of the grammar each, and names everywhere else."""

KEYWORDS = DECLARATIONS | STATEMENTS | CLAUSES | SOFT
