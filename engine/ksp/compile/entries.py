"""Which entries of a view the answer for a node depends on: so that a changed entry concerns the nodes that read it.

    deny "…" when siblings[node.name] > 0                 an entry (n7,) concerns the node n7
    deny "…" when near[key][node.labels[key]] > 0         an entry (zone, a) the nodes whose label zone is a

What a rule reads of a view before it looks at nodes (`size(near)`, the least of its numbers) is no matter of entries:
it is among the values that `at` says its functions share, and if it changes, all nodes are asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ksp.check.stages import children, walk
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Collect,
    Comprehend,
    Constant,
    Deny,
    Expr,
    Fail,
    For,
    In,
    Kind,
    Let,
    LetIn,
    Op,
    Ref,
    Rule,
    Statement,
    Stop,
)
from ksp.check.types import INT, List, Map, Struct, Type
from ksp.compile.columns.reads import is_name, texts_of_node
from ksp.compile.columns.scope import likeness
from ksp.compile.free import FreeNames
from ksp.compile.inline import inline
from ksp.compile.places import key_of

WRITTEN_OUT = 1_000  # expressions of a key with its lets in their places; a larger one is not looked at


@dataclass(frozen=True, slots=True)
class EntryPattern:
    """Nodes read entries whose key at `position` is the text of this part of theirs. A step of the part that is an int
    stands for the entry's own key at that position: ("labels", 0) of an entry (zone, a) is the label zone. With
    `presence` they see only whether an entry is there: one pod more, where there are some, makes no difference."""

    position: int
    part: tuple[str | int, ...]
    presence: bool = False

    def of(self, keys: Sequence[object]) -> tuple[tuple[str, ...], object]:
        """The part, and the value that it has in the nodes that read an entry of these keys."""
        part = tuple(str(keys[step]) if isinstance(step, int) else step for step in self.part)
        return part, keys[self.position]


Patterns = tuple[EntryPattern, ...]


def view_entries(rule: Rule) -> dict[str, Patterns | None]:
    """For each view that the rule reads node by node, by its name: the patterns by which nodes read entries, together
    all of them; or None, if any change may concern any node. A view that is not there is read before nodes only."""
    found = _Entries()
    found.statements(rule.body)
    if rule.score is not None:
        found.visit(inline(rule.score))
    return {
        name: None if known is None else tuple(EntryPattern(*where, presence) for where, presence in known.items())
        for name, known in found.views.items()
    }


class _Entries:
    """Goes through what a rule computes for a node."""

    def __init__(self) -> None:
        self.views: dict[str, dict[tuple[int, tuple[str | int, ...]], bool] | None] = {}
        self._lets: dict[Binding, Expr] = {}
        self._late: set[Binding] = set()  # variables of loops over what differs from node to node
        self._seen: set[Binding] = set()
        self._free = FreeNames()

    def statements(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            match statement:
                case Let(binding=binding):
                    if binding.value is not None:
                        self._lets[binding] = inline(binding.value)
                case For(variables=variables, range=range_, body=body):
                    self._loop(variables, inline(range_))
                    self.statements(body)
                case Collect(body=body):
                    self.statements(body)
                case Deny(condition=condition, reasons=reasons):
                    self._visit_all(inline(expr) for expr in (condition, *reasons))
                case Fail(condition=condition, message=message):
                    self._visit_all(inline(expr) for expr in (condition, message))
                case Stop(condition=condition):
                    self.visit(inline(condition))

    def _visit_all(self, exprs: Iterator[Expr]) -> None:
        for expr in exprs:
            self.visit(expr)

    def _loop(self, variables: Sequence[Binding], range_: Expr) -> None:
        if self._is_late(range_):
            self._late.update(variables)
        self.visit(range_)

    def _is_late(self, expr: Expr) -> bool:
        """Its value can differ from node to node."""
        names = self._free.through_lets(expr, self._lets)
        return any(
            name == "scores"
            or (isinstance(name, Binding) and (name in self._late or key_of(name) in ("node", "feasible")))
            for name in names
        )

    # ---- expressions

    def visit(self, expr: Expr) -> None:
        path = self._path(expr)
        if path is not None:
            self._read(*path, expr.type)
            return
        match expr:
            case In(item=item, container=container):
                path = self._path(container)
                if path is not None:
                    view, keys = path
                    self._read(view, (*keys, item), expr.type, presence=True)
                    return
            case Apply(row=row, arguments=(counted,)) if row.name == "size":
                path = self._path(counted)
                if path is not None and any(self._is_late(key) for key in path[1]):
                    self._read(*path, expr.type, presence=True)
                    return
            case Op():
                number = _compared_with_nothing(expr)
                path = self._path(number) if number is not None else None
                if path is not None:
                    self._read(*path, INT, presence=_counts(path[0]))
                    return
            case Ref(binding=binding) if binding in self._lets:
                if binding not in self._seen:
                    self._seen.add(binding)
                    self.visit(self._lets[binding])
                return
            case LetIn(binding=binding, value=value, body=body):
                self._lets[binding] = value
                self.visit(body)
                return
            case Comprehend(variables=variables, range=range_, body=body):
                self._loop(variables, range_)
                self.visit(body)
                return
        if not self._is_late(expr) and not _holds_maps(expr.type):
            return  # one value for all nodes, and known as such
        for child in children(expr):
            self.visit(child)

    def _path(self, expr: Expr) -> tuple[Binding, tuple[Expr, ...]] | None:
        """The view that the expression is, or a part of it, and the keys that lead there."""
        keys: list[Expr] = []
        while True:
            match expr:
                case At(value=value, key=key) if isinstance(value.type, Map):
                    keys.append(key)
                    expr = value
                case Ref(binding=binding) if binding.kind is Kind.VIEW:
                    is_map = binding.view is not None and isinstance(binding.type, Map)
                    return (binding, tuple(reversed(keys))) if is_map else None
                case Ref(binding=binding) if binding in self._lets:
                    expr = self._lets[binding]
                case _:
                    return None

    def _read(self, view: Binding, keys: Sequence[Expr], type: Type, *, presence: bool = False) -> None:
        for key in keys:
            self.visit(key)
        late = [position for position, key in enumerate(keys) if self._is_late(key)]
        if not late:
            if _holds_maps(type):
                self.views[view.name] = None  # who gets the map may look up anything
            return
        known = self.views.setdefault(view.name, {})
        for position in late:
            part = self._part(keys[position], keys[:position])
            if part is not None:
                if known is not None:
                    known[position, part] = known.get((position, part), True) and presence
                return
        self.views[view.name] = None

    # ---- keys

    def _part(self, key: Expr, before: Sequence[Expr]) -> tuple[str | int, ...] | None:
        """The part of the node that the key is the text of."""
        written = self._written(key)
        if written is None:
            return None
        if is_name(written):
            return ("name",)
        if not isinstance(written, At) or not texts_of_node(written.value):
            return None
        which = texts_of_node(written.value)
        if isinstance(written.key, Constant):
            return which, str(written.key.value)
        wanted = likeness(written.key, {})
        for position, other in enumerate(before):
            same = self._written(other)
            if same is not None and likeness(same, {}) == wanted:
                return which, position
        return None

    def _written(self, expr: Expr) -> Expr | None:
        """The expression with the values of names in their places; None if that makes it large."""
        while True:
            names = [part.binding for part in walk(expr) if isinstance(part, Ref)]
            values: Mapping[Binding, Expr] = {name: value for name in names if (value := self._value(name)) is not None}
            if not values:
                return expr
            size = sum(sum(1 for _ in walk(values[name])) for name in names if name in values)
            if size > WRITTEN_OUT:
                return None
            expr = inline(expr, values)

    def _value(self, name: Binding) -> Expr | None:
        if name.kind is Kind.CONST:
            return inline(name.value) if name.value is not None else None
        return self._lets.get(name)


def _counts(view: Binding) -> bool:
    """Its entries are above 0 as long as they are there."""
    return view.view is not None and view.view.form == "count"


def _compared_with_nothing(expr: Op) -> Expr | None:
    """The number of which the comparison says only whether it is 0, if it is never below."""
    match expr:
        case Op(operator=">" | "!=" | "==" | "<=", operands=(counted, Constant(value=0))):
            return counted
        case Op(operator="<" | "!=" | "==" | ">=", operands=(Constant(value=0), counted)):
            return counted
        case Op(operator=">=" | "<", operands=(counted, Constant(value=1))):
            return counted
    return None


def _holds_maps(type: Type) -> bool:
    match type:
        case Map():
            return True
        case List(item):
            return _holds_maps(item)
        case Struct():
            return False
    return False
