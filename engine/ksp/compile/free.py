"""Which names an expression reads that it does not bind itself: found once for each expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ksp.check.stages import children
from ksp.check.typed import Apply, Binding, Comprehend, Expr, LetIn, NodeScore, Ref

Name = Binding | str


@dataclass(frozen=True, slots=True)
class Free:
    """`names` are read, `bound` are bound inside. As texts: `scores`, those of nodes; `cluster`, the objects that a
    function reads by itself."""

    names: frozenset[Name]
    bound: frozenset[Binding]


NOTHING = Free(frozenset(), frozenset())


class FreeNames:
    """Answers for the expressions of one rule."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, Free]] = {}
        self._through: dict[Binding, frozenset[Name]] = {}

    def of(self, expr: Expr) -> Free:
        known = self._known.get(id(expr))
        if known is not None:
            return known[1]
        found = self._found(expr)
        self._known[id(expr)] = (expr, found)
        return found

    def _found(self, expr: Expr) -> Free:
        if isinstance(expr, Ref):
            return Free(frozenset({expr.binding}), frozenset())
        parts = [self.of(child) for child in children(expr)]
        if not parts:
            return NOTHING
        names = parts[0].names if len(parts) == 1 else frozenset().union(*(part.names for part in parts))
        bound = parts[0].bound if len(parts) == 1 else frozenset().union(*(part.bound for part in parts))
        match expr:
            case Comprehend(variables=variables):
                return Free(names - {*variables}, bound | {*variables})
            case LetIn(binding=binding):
                return Free(names - {binding}, bound | {binding})
            case NodeScore():
                return Free(names | {"scores"}, bound)
            case Apply(row=row) if row.reads:
                return Free(names | {"cluster"}, bound)
        return Free(names, bound)

    def through_lets(self, expr: Expr, lets: Mapping[Binding, Expr]) -> frozenset[Name]:
        """The names that it reads, those that its lets read among them."""
        found: set[Name] = set()
        for name in self.of(expr).names:
            found.add(name)
            if isinstance(name, Binding) and name in lets:
                if name not in self._through:
                    self._through[name] = self.through_lets(lets[name], lets)
                found |= self._through[name]
        return frozenset(found)
