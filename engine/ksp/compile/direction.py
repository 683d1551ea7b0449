"""Whether more or less of what a rule reads can help a pod that it denied.

A rule admits a node where none of its denials holds. So if each condition can only rise with something (true is above
false), only less of that can help; if each can only fall, only more. The analysis follows comparisons, sums, sizes and
the tests of lists and maps, through names; where it cannot tell, both may help. It takes ints for what they count: a
sum so large that it wraps is not thought of.

What has an order, and which way is up: numbers; false before true; lists as the elements that they have, however often
and in whatever order; maps entry by entry, one that is absent before one that is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from ksp.check.stages import children
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
    Has,
    If,
    In,
    Kind,
    Let,
    LetIn,
    Logic,
    Op,
    Ref,
    Rule,
    Statement,
    Stop,
)
from ksp.check.types import Map
from ksp.compile.mentioned import Mentioned, path_in_node


class Helps(Enum):
    """What of something can help."""

    NOTHING = "nothing"
    LESS = "less"
    MORE = "more"
    EITHER = "either"


class Way(Enum):
    """How a value moves when something grows."""

    STAYS = 0
    UP = 1
    DOWN = -1
    UNKNOWN = 2

    def flipped(self) -> Way:
        return self if self is Way.UNKNOWN else Way(-self.value)


_HELPS = {Way.STAYS: Helps.NOTHING, Way.UP: Helps.LESS, Way.DOWN: Helps.MORE, Way.UNKNOWN: Helps.EITHER}


class Directions:
    """How the conditions of a rule move when something grows. A `fail` counts as a denial: after it the pod may be
    admitted."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.name = ""
        self._ways: dict[Binding, Way] = {}
        self._mentioned = Mentioned()

    def helps(self, name: str) -> Helps:
        """What helps of a view, or of a part of the node under test as rules write it: `allocatable`, `spec.taints`."""
        self.name = name
        self._ways.clear()
        return _HELPS[_joined(self.of((*self.rule.before, *self.rule.body)))]

    def of(self, statements: Iterable[Statement]) -> Iterator[Way]:
        for statement in statements:
            match statement:
                case Deny(condition=condition) | Fail(condition=condition):
                    yield self.way(self._mentioned.inlined(condition))
                case Stop(condition=condition):
                    yield self.way(self._mentioned.inlined(condition)).flipped()
                case For(body=body):
                    yield self._of_loop(statement)
                    yield from self.of(body)
                case Collect(body=body):
                    yield from self.of(body)

    def _of_loop(self, loop: For) -> Way:
        """Of the range: with more elements more is asked, if nothing in the loop ends it early."""
        moved = self.way(self._mentioned.inlined(loop.range))
        plain = len(loop.variables) == 1 and all(isinstance(each, Let | Deny) for each in loop.body)
        return moved if plain or moved is Way.STAYS else Way.UNKNOWN

    def way(self, expr: Expr) -> Way:
        """How the value moves: not at all, if nothing in it has to do with what grows."""
        if not any(self._is_related(each) for each in self._mentioned.by(expr)):
            return Way.STAYS
        path = path_in_node(expr)
        if path is not None:
            return self._of_path(path, has=isinstance(expr, Has))
        match expr:
            case Constant():
                return Way.STAYS
            case Ref(binding=binding):
                return self._of_name(binding)
            case At(value=value, key=key) if isinstance(value.type, Map):
                return self.way(value) if self.way(key) is Way.STAYS else Way.UNKNOWN
            case In(item=item, container=container):
                return self.way(container) if self.way(item) is Way.STAYS else Way.UNKNOWN
            case Op() | Logic():
                return self._of_operator(expr)
            case If(condition=condition, then=then, otherwise=otherwise):
                stays = self.way(condition) is Way.STAYS
                return _joined([self.way(then), self.way(otherwise)]) if stays else Way.UNKNOWN
            case Comprehend():
                return self._of_comprehension(expr)
            case LetIn(binding=binding, value=value, body=body):
                self._ways[binding] = self.way(value)
                return self.way(body)
            case Apply(row=row, arguments=(inner,)) if row.name in ("size", "keys"):
                return self.way(inner)
            case Apply(arguments=arguments):  # of a node as a whole, functions read what has no order
                parts = [part for part in arguments if path_in_node(part) != ""]
                return Way.STAYS if all(self.way(part) is Way.STAYS for part in parts) else Way.UNKNOWN
        return Way.STAYS if all(self.way(child) is Way.STAYS for child in children(expr)) else Way.UNKNOWN

    def _of_name(self, binding: Binding) -> Way:
        if binding.kind is Kind.VIEW:
            return Way.UP if binding.name == self.name else Way.STAYS
        if binding.kind is Kind.LET and binding.value is not None and binding not in self._ways:
            self._ways[binding] = self.way(self._mentioned.inlined(binding.value))
        return self._ways.get(binding, Way.STAYS)

    def _of_path(self, path: str, *, has: bool) -> Way:
        """Of what is read of the node under test. What holds the part, or is in it, moves in ways not known."""
        if path == self.name:
            return Way.UNKNOWN if has else Way.UP
        return Way.UNKNOWN if self._is_related(path) else Way.STAYS

    def _is_related(self, mentioned: str) -> bool:
        """The view or part of that name is the one that grows, holds it, or is in it."""
        name = self.name
        return mentioned in ("", name) or mentioned.startswith(f"{name}.") or name.startswith(f"{mentioned}.")

    def _of_operator(self, expr: Op | Logic) -> Way:
        match expr:
            case Logic(items=items):
                return _joined([self.way(item) for item in items])
            case Op(operator="!" | "neg", operands=(inner,)):
                return self.way(inner).flipped()
            case Op(operator="+", operands=(a, b)):
                return _joined([self.way(a), self.way(b)])
            case Op(operator="-" | ">" | ">=", operands=(a, b)):
                return _joined([self.way(a), self.way(b).flipped()])
            case Op(operator="<" | "<=", operands=(a, b)):
                return _joined([self.way(a).flipped(), self.way(b)])
            case Op(operator="==" | "!=" as operator, operands=(Apply() as size, Constant(value=0))) if _is_size(size):
                return self.way(size).flipped() if operator == "==" else self.way(size)
        return Way.STAYS if all(self.way(child) is Way.STAYS for child in children(expr)) else Way.UNKNOWN

    def _of_comprehension(self, expr: Comprehend) -> Way:
        """Of the elements of a list or the keys of a map: with more of it there are more, each as it was."""
        moved, body = self.way(expr.range), self.way(expr.body)
        if len(expr.variables) > 1 and moved is not Way.STAYS:
            return Way.UNKNOWN
        match expr.kind:
            case "exists":
                return _joined([moved, body])
            case "all":
                return _joined([moved.flipped(), body])
            case "filter":
                return _joined([moved, body])
            case "map" if body is Way.STAYS:
                return moved
        return Way.STAYS if moved is Way.STAYS and body is Way.STAYS else Way.UNKNOWN


def _joined(ways: Iterable[Way]) -> Way:
    moved = {way for way in ways if way is not Way.STAYS}
    return Way.STAYS if not moved else moved.pop() if len(moved) == 1 else Way.UNKNOWN


def _is_size(expr: Apply) -> bool:
    """It is 0 or more, so that it is 0 only at its least."""
    return expr.row.name == "size"
