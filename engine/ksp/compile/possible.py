"""What can be said of a condition before any node is looked at.

`may_be_true` makes of a condition another that reads no node and holds wherever the first can hold for some node. A
rule whose every `deny` cannot hold for a pod admits all nodes: it costs nothing per node. `may_vary` says the same of
a value: where it does not hold, the value is the same for all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ksp.check.functions import SIZE
from ksp.check.stages import children, free_bindings, stage_of, walk
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Comprehend,
    Constant,
    Expr,
    If,
    In,
    Kind,
    LetIn,
    Logic,
    Op,
    Ref,
    Stage,
)
from ksp.check.types import BOOL, INT, Int, List, Map

MOST = 2_000  # expressions that are looked at for one rule: a choice in the condition of a choice doubles them


def _truth(expr: Expr, value: bool) -> Constant:
    return Constant(expr.span, BOOL, value)


def either(place: Expr, parts: Sequence[Expr]) -> Expr:
    """`a || b || …`, without what is constant."""
    items = [part for part in parts if not (isinstance(part, Constant) and not part.value)]
    if any(isinstance(part, Constant) for part in items):
        return _truth(place, value=True)
    return _logic(place, "||", items)


def both(place: Expr, parts: Sequence[Expr]) -> Expr:
    """`a && b && …`, without what is constant."""
    items = [part for part in parts if not (isinstance(part, Constant) and part.value)]
    if any(isinstance(part, Constant) for part in items):
        return _truth(place, value=False)
    return _logic(place, "&&", items)


def _logic(place: Expr, operator: str, items: list[Expr]) -> Expr:
    if not items:
        return _truth(place, value=operator == "&&")
    return items[0] if len(items) == 1 else Logic(place.span, BOOL, operator, tuple(items))


def _not_empty(collection: Expr) -> Expr:
    size = Apply(collection.span, INT, SIZE, (collection,))
    return Op(collection.span, BOOL, ">", (size, Constant(collection.span, INT, 0)))


def _is_view(expr: Expr) -> bool:
    match expr:
        case Ref(binding=binding):
            return binding.kind is Kind.VIEW
        case At(value=value):
            return _is_view(value)
    return False


def _before_nodes(expr: Expr) -> bool:
    return stage_of(expr) <= Stage.CLUSTER


class Possible:
    """Weakens conditions. `early` says what can be computed where the weaker condition is; by default, before nodes.
    `lets` are the values of the rule's lets."""

    def __init__(
        self, early: Callable[[Expr], bool] = _before_nodes, lets: Mapping[Binding, Expr] | None = None
    ) -> None:
        self._early = early
        self._late: set[Binding] = set()  # variables that run over what is known late
        self.lets = {} if lets is None else lets
        self._seen = 0

    def _gives_up(self) -> bool:
        """Enough was looked at: `true` is always a right answer."""
        self._seen += 1
        return self._seen > MOST

    def early(self, expr: Expr) -> bool:
        """The expression can be computed where the weaker condition is."""
        return self._early(expr) and not (self._late and free_bindings(expr) & self._late)

    def may_be(self, expr: Expr, value: bool) -> Expr:
        """A condition on the pod that holds if the expression can have the value on some node."""
        if isinstance(expr, Constant):
            return _truth(expr, bool(expr.value) == value)
        if self._gives_up():
            return _truth(expr, value=True)
        if self.early(expr):
            return expr if value else Op(expr.span, BOOL, "!", (expr,))
        match expr:
            case Op(operator="!", operands=(inner,)):
                return self.may_be(inner, not value)
            case Logic(operator=operator, items=items):
                parts = [self.may_be(item, value) for item in items]
                return both(expr, parts) if (operator == "&&") == value else either(expr, parts)
            case If(condition=condition, then=then, otherwise=otherwise):
                first = both(expr, [self.may_be(condition, value=True), self.may_be(then, value)])
                return either(
                    expr, [first, both(expr, [self.may_be(condition, value=False), self.may_be(otherwise, value)])]
                )
            case Comprehend(kind="exists" | "all" as kind, range=range_, body=body) if (kind == "exists") == value:
                if self.early(range_):
                    return self._exists(expr, self.may_be(body, value))
                self._late.update(expr.variables)
                return both(expr, [self.may_have_items(range_), self.may_be(body, value)])
            case In(container=container) if value:
                return self.may_have_items(container)
            case LetIn(binding=binding, value=inner, body=body):
                return self._within(
                    expr, binding_is_early=self.early(inner), body=self.may_be(body, value), name=binding
                )
            case Op(operator=">", operands=(left, Constant(value=0))) if value and isinstance(left.type, Int):
                return self._above_zero(expr, left)
        return _truth(expr, value=True)

    def _exists(self, expr: Comprehend, body: Expr) -> Expr:
        if isinstance(body, Constant) and not body.value:
            return body
        if isinstance(body, Constant):
            return _not_empty(expr.range)
        return replace(expr, type=BOOL, kind="exists", body=body)

    def exists_over(self, range_: Expr, variable: Binding, body: Expr) -> Expr:
        """`range.exists(variable, body)`, simplified."""
        if isinstance(body, Constant):
            return _not_empty(range_) if body.value else body
        reads = (part.binding for part in walk(body) if isinstance(part, Ref))
        if not any(binding is variable or binding.kind is Kind.LET for binding in reads):
            return both(range_, [_not_empty(range_), body])
        return Comprehend(range_.span, BOOL, "exists", (variable,), range_, body)

    def exists_over_entries(self, range_: Expr, variables: tuple[Binding, ...], body: Expr) -> Expr:
        """The same over the entries of a map, or a list with its indexes."""
        if isinstance(body, Constant):
            return _not_empty(range_) if body.value else body
        return Comprehend(range_.span, BOOL, "exists", variables, range_, body)

    def reads(self, expr: Expr, binding: Binding) -> bool:
        """The name stands in the expression."""
        return any(isinstance(part, Ref) and part.binding is binding for part in walk(expr))

    def _within(self, expr: LetIn, *, binding_is_early: bool, body: Expr, name: object) -> Expr:
        if isinstance(body, Constant):
            return body
        if binding_is_early:
            return replace(expr, type=BOOL, body=body)
        reads = any(isinstance(part, Ref) and part.binding is name for part in walk(body))
        return _truth(expr, value=True) if reads else body

    def _above_zero(self, expr: Expr, amount: Expr) -> Expr:
        """A count can be above 0 only where what is counted is not empty."""
        match amount:
            case Apply(row=row, arguments=(counted,)) if row.name == "size":
                return self.may_have_items(counted)
            case At(value=value) if self.early(value) and isinstance(value.type, Map) and _is_view(value):
                return _not_empty(value)
            case At(value=At(value=value)) if self.early(value) and isinstance(value.type, Map) and _is_view(value):
                return _not_empty(value)
        return _truth(expr, value=True)

    def may_have_items(self, expr: Expr) -> Expr:
        """A condition on the pod that holds if the list, map or text can be other than empty on some node."""
        if self.early(expr):
            return _not_empty(expr)
        match expr:
            case Comprehend(kind="filter" | "map", range=range_):
                return self.may_have_items(range_)
            case Op(operator="+", operands=parts):
                return either(expr, [self.may_have_items(part) for part in parts])
            case Apply(row=row, arguments=(first, *_)) if row.part:
                return self.may_have_items(first)
            case At(value=value) if _is_view(value):
                return self.may_have_items(value)
            case Ref(binding=binding) if binding in self.lets:
                return self.may_have_items(self.lets[binding])
        return _truth(expr, value=True)

    def may_vary(self, expr: Expr) -> Expr:
        """A condition on the pod that holds if the value can differ from node to node."""
        if self._gives_up():
            return _truth(expr, value=True)
        if self.early(expr):
            return _truth(expr, value=False)
        match expr:
            case Logic(operator=operator, items=items):
                return self._logic_varies(expr, operator == "&&", items)
            case If(condition=condition, then=then, otherwise=otherwise):
                first = both(expr, [self.may_be(condition, value=True), self.may_vary(then)])
                second = both(expr, [self.may_be(condition, value=False), self.may_vary(otherwise)])
                return either(expr, [self.may_vary(condition), first, second])
            case Comprehend(range=range_, body=body) if self.early(range_):
                return self._exists(expr, self.may_vary(body))
            case Comprehend(range=range_, body=body):
                self._late.update(expr.variables)
                inside = both(expr, [self.may_have_items(range_), self.may_vary(body)])
                return either(expr, [self.may_vary(range_), inside])
            case Ref(binding=binding) if binding.kind is Kind.VARIABLE:
                return _truth(expr, value=False)  # it varies as what it runs over does
            case At(value=value, key=key) if self.early(value) and isinstance(value.type, Map | List):
                return both(expr, [_not_empty(value), self.may_vary(key)])
            case LetIn(binding=binding, value=inner, body=body):
                inside = self._within(expr, binding_is_early=self.early(inner), body=self.may_vary(body), name=binding)
                return inside if self.early(inner) else either(expr, [self.may_vary(inner), inside])
        return either(expr, [self.may_vary(child) for child in children(expr)] or [_truth(expr, value=True)])

    def _logic_varies(self, expr: Expr, conjunction: bool, items: Sequence[Expr]) -> Expr:
        """An item matters only where those before it leave the matter open."""
        parts: list[Expr] = []
        open_so_far: list[Expr] = []
        for item in items:
            parts.append(both(expr, [*open_so_far, self.may_vary(item)]))
            open_so_far.append(self.may_be(item, conjunction))
        return either(expr, parts)
