"""Places in generated code where a value can be computed, from the outermost to the innermost.

A `Frame` is a function: of a rule's parameters, of a pod, of the feasible nodes, of a node. A `Block` is the body of
a `for` statement in one, a `Branch` the body of an `if`. An `Inner` is the body of a comprehension; what is computed
there becomes a clause of it. A `Column` is what a loop over a list that is known early can compute for each element
before any node is looked at: the loop then runs over tuples of the element and those values.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field

from ksp.check.typed import Binding, Kind

Key = Binding | str

# Names that generated code uses itself.
RESERVED = frozenset(
    {
        "len",
        "any",
        "all",
        "tuple",
        "sorted",
        "sum",
        "float",
        "min",
        "max",
        "dict",
        "zip",
        "enumerate",
        "int",
        "abs",
        "first",
    }
    | {
        "cluster",
        "views",
        "pod",
        "node",
        "feasible",
        "raw",
        "normal",
        "score",
        "scores",
        "check",
        "column",
        "prepare",
        "at",
        "rows",
        "normalize",
    }
    | {"reasons", "unresolvable", "ruling", "trace", "constant"}
)


def key_of(binding: Binding) -> Key:
    """What a binding is known by: the roots by name, all else by identity."""
    return binding.name if binding.kind is Kind.ROOT else binding


class Names:
    """Python names, each given once in a generated function."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}  # by name, the last number that was tried behind it

    def fresh(self, wanted: str) -> str:
        base = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in wanted).lstrip("_") or "v"
        if base[0].isdigit():
            base = f"v{base}"
        if keyword.iskeyword(base) or base in RESERVED:
            base += "_"
        name, number = base, self._used.get(base, 1)
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used[base] = number
        self._used.setdefault(name, 1)
        return name


def shape(node: object, renamed: dict[str, str]) -> str:
    """The code as text, the same for two pieces that differ in the names of their loops' variables only."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return renamed.setdefault(name, f"${len(renamed)}")
        case ast.Name(id=name):
            return renamed.get(name, name)
        case ast.Constant(value=value):
            return f"{type(value).__name__} {value!r}"
        case ast.ListComp(elt=body, generators=clauses) | ast.GeneratorExp(elt=body, generators=clauses):
            inner = dict(renamed)
            parts = [shape(part, inner) for c in clauses for part in (c.iter, c.target, c.ifs)]
            return f"{type(node).__name__}({', '.join(parts)}, {shape(body, inner)})"
        case ast.AST():
            return f"{type(node).__name__}({', '.join(shape(getattr(node, f, None), renamed) for f in node._fields)})"
        case list():
            return f"[{', '.join(shape(part, renamed) for part in node)}]"
    return repr(node)


@dataclass(eq=False, slots=True)
class Place:
    """Somewhere in the code. `level` is shared by places between which nothing is gained by moving a value."""

    parent: Place | None
    all_names: Names
    names: dict[Key, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)

    @property
    def level(self) -> Place:
        return self

    def lineage(self) -> Iterator[Place]:
        yield self
        if self.parent is not None:
            yield from self.parent.lineage()

    def name_of(self, key: Key) -> str | None:
        """The Python name of a binding, if it has one here."""
        return next((place.names[key] for place in self.lineage() if key in place.names), None)

    def bind(self, key: Key, name: str) -> None:
        """The binding has this name here."""
        self.names[key] = name

    def assign(self, value: ast.expr, hint: str = "v") -> str:
        """Compute a value here, once; its name."""
        text = shape(value, {})
        known = next((p.known[text] for p in self.lineage() if text in p.known), None)
        if known is not None:
            return known
        name = self.all_names.fresh(hint)
        self.known[text] = name
        self.put(name, value)
        return name

    def put(self, name: str, value: ast.expr) -> None:
        raise AssertionError(type(self))


@dataclass(eq=False, slots=True)
class Lines(Place):
    """A place with statements."""

    lines: list[ast.stmt] = field(default_factory=list)

    def put(self, name: str, value: ast.expr) -> None:
        self.lines.append(ast.Assign([ast.Name(name, ast.Store())], value))


class Frame(Lines):
    """The body of a function."""


class Block(Lines):
    """The body of a `for` statement."""


class Branch(Lines):
    """The body of an `if` statement: what is computed in it stays there, and nothing moves out of it to its level."""

    @property
    def level(self) -> Place:
        assert self.parent is not None
        return self.parent.level


@dataclass(eq=False, slots=True)
class Clauses(Place):
    """A place in a comprehension: what is computed here is one more clause, `for name in (value,)`."""

    clauses: list[ast.comprehension] = field(default_factory=list)

    def put(self, name: str, value: ast.expr) -> None:
        self.clauses.append(ast.comprehension(ast.Name(name, ast.Store()), ast.Tuple([value], ast.Load()), [], 0))


class Inner(Clauses):
    """The body of a comprehension."""


@dataclass(eq=False, slots=True)
class Column(Clauses):
    """What a loop computes early for each element: `own` are the names of those values. `body` is the loop's own place,
    where they are seen too. `outer` is the column of the same loop one function further out, whose values this one's
    elements bring along."""

    own: list[str] = field(default_factory=list)
    body: Place | None = None
    outer: Column | None = None

    @property
    def columns(self) -> list[str]:
        """All values that come with an element."""
        return [*(self.outer.columns if self.outer is not None else ()), *self.own]

    def lineage(self) -> Iterator[Place]:
        yield self
        column = self.outer
        while column is not None:
            yield column
            column = column.outer
        if self.parent is not None:
            yield from self.parent.lineage()

    def bind(self, key: Key, name: str) -> None:
        Clauses.bind(self, key, name)
        assert self.body is not None
        self.body.bind(key, name)

    def put(self, name: str, value: ast.expr) -> None:
        Clauses.put(self, name, value)
        self.own.append(name)
