"""Which views an expression reads, and which parts of the node under test: found once for each expression."""

from __future__ import annotations

from ksp.check.stages import children
from ksp.check.typed import Binding, Expr, Has, Kind, LetIn, Read, Ref
from ksp.compile.inline import inline

NOTHING: frozenset[str] = frozenset()


class Mentioned:
    """Answers for the expressions of one rule. Views are called by their names, parts by what leads to them."""

    def __init__(self) -> None:
        self._inlined: dict[int, tuple[Expr, Expr]] = {}
        self._known: dict[int, tuple[Expr, frozenset[str]]] = {}
        self._bound: dict[Binding, frozenset[str]] = {}

    def inlined(self, expr: Expr) -> Expr:
        """The same without calls of functions: the same one for the same expression."""
        known = self._inlined.get(id(expr))
        if known is None:
            known = self._inlined[id(expr)] = (expr, inline(expr))
        return known[1]

    def by(self, expr: Expr) -> frozenset[str]:
        """What an expression without calls mentions, through names."""
        known = self._known.get(id(expr))
        if known is None:
            known = self._known[id(expr)] = (expr, self._found(expr))
        return known[1]

    def _found(self, expr: Expr) -> frozenset[str]:
        path = path_in_node(expr)
        if path is not None:
            return frozenset({path})
        match expr:
            case Ref(binding=binding):
                return self._by_name(binding)
            case LetIn(binding=binding, value=value, body=body):
                self._bound[binding] = self.by(value)
                return self._bound[binding] | self.by(body)
        return NOTHING.union(*(self.by(child) for child in children(expr)))

    def _by_name(self, binding: Binding) -> frozenset[str]:
        if binding.kind is Kind.VIEW:
            return frozenset({binding.name})
        if binding.kind is Kind.LET and binding.value is not None and binding not in self._bound:
            self._bound[binding] = self.by(self.inlined(binding.value))
        return self._bound.get(binding, NOTHING)


def path_in_node(expr: Expr) -> str | None:
    """The fields that lead from the node under test to the value, such as `spec.taints`; "" is the node itself."""
    steps: list[str] = []
    current = expr
    while isinstance(current, Read | Has):
        steps.append(current.field.name)
        current = current.value
    is_node = isinstance(current, Ref) and current.binding.kind is Kind.ROOT and current.binding.name == "node"
    return ".".join(reversed(steps)) if is_node else None
