"""What a rule costs, and how large what it makes can grow: the rule run over sizes in place of values.

A shape is how many items a value has, and the shape of an item. What comes from the API has usual sizes (below); what
is made of it has sums and products of them, bounded by `LARGEST`. The cost is a sum of products of named sizes, such as
`taints * tolerations`; constants are left out. What a rule repeats over lists that it makes itself has no such name: it
is counted in steps, bounded by `STEPS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ksp.check import mistakes
from ksp.check.parts import statement_expressions
from ksp.check.report import Report
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Collect,
    Comprehend,
    Constant,
    Expr,
    For,
    Function,
    Has,
    If,
    In,
    Invoke,
    Kind,
    LetIn,
    ListOf,
    Logic,
    MapOf,
    NodeScore,
    Op,
    Read,
    Ref,
    Rule,
    Statement,
    StructOf,
    Text,
    View,
)
from ksp.check.types import List, Map, String, Type

ITEMS = 1024  # of a list or map that the API holds
CHARACTERS = 256  # of a text that the API holds
LARGEST = 1 << 26  # characters and items, all told, of one value that a rule makes
STEPS = 1_000_000  # goes through lists of a rule's own making, all told; one of the API counts once
DEGREES = 6  # passes nested in one another, a view's pass over pods or nodes among them

Product = tuple[str, ...]
Cost = frozenset[Product]
FREE: Cost = frozenset()


@dataclass(frozen=True, slots=True)
class Shape:
    """`count` items (or characters) of the shape `item`; `label` names the size where it is one of the API's."""

    count: int
    item: Shape | None = None
    label: str = ""

    @property
    def cells(self) -> int:
        return self.count * (self.item.cells if self.item else 1)


ONE = Shape(1)


def usual(type: Type, label: str) -> Shape:
    """The shape of what the API holds."""
    match type:
        case String():
            return Shape(CHARACTERS, None, "")
        case List(item):
            return Shape(ITEMS, usual(item, label), label)
        case Map(_, value):
            return Shape(ITEMS, usual(value, label), label)
    return ONE


def larger(a: Shape, b: Shape) -> Shape:
    item = larger(a.item, b.item) if a.item and b.item else a.item or b.item
    return Shape(max(a.count, b.count), item, a.label or b.label)


def times(label: str, cost: Cost) -> Cost:
    """The cost of doing it once for each item."""
    if not label:
        return cost
    return frozenset(tuple(sorted((*product, label))) for product in cost) | {(label,)}


def show_cost(cost: Iterable[Product]) -> str:
    """The products of the highest degree, as `O(pods * terms)`."""
    products = sorted(cost, key=lambda p: (-len(p), p))
    top = [p for p in products if products and len(p) == len(products[0])][:3]
    return f"O({' + '.join(' * '.join(p) for p in top)})" if top else "O(1)"


class Analysis:
    """Goes once through a rule with its functions put in."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.shapes: dict[Binding, Shape] = {}
        self.per_view: dict[str, Cost] = {}
        self.steps = 0
        self._repeated = 1  # how often what is looked at now is done, over lists of the rule's own making

    # ---- rules

    def rule(self, rule: Rule) -> Cost:
        """The cost of all that the rule does for one pod and one node, views built anew included."""
        for parameter in rule.parameters:
            self.shapes[parameter.binding] = usual(parameter.binding.type, parameter.binding.name)
        waiting = list(rule.views)
        normalize = rule.normalize.body if rule.normalize else ()
        total = self._statements((*rule.before, *rule.body, *normalize))
        for binding in waiting:
            if binding.view is not None:
                self.per_view[binding.name] = self._view(binding.view)
                total |= self.per_view[binding.name]
        for value in (rule.score, rule.normalize.score if rule.normalize else None):
            if value is not None:
                total |= self.expr(value)[1]
        return total

    def _view(self, view: View) -> Cost:
        inner: Cost = FREE
        labels = [view.relation]
        self.shapes[view.joins[0].variable] = ONE
        outside = self._repeated
        for join in view.joins[1:]:
            if join.range is not None:
                shape, cost = self.expr(join.range)
                self.shapes[join.variable] = shape.item or ONE
                labels.append(shape.label)
                inner |= cost
                self._repeat(shape)
        for part in (view.where, *view.keys, view.amount):
            if part is not None:
                inner |= self.expr(part)[1]
        self._repeated = outside
        for label in reversed(labels):
            inner = times(label, inner)
        return inner

    def _statements(self, statements: Iterable[Statement]) -> Cost:
        total: Cost = FREE
        for statement in statements:
            total |= self._statement(statement)
        return total

    def _statement(self, statement: Statement) -> Cost:
        match statement:
            case For(variables=variables, range=range_, body=body):
                shape, cost = self.expr(range_)
                self._bind(variables, shape)
                outside = self._repeat(shape)
                inner = self._statements(body)
                self._repeated = outside
                return cost | times(shape.label, inner)
            case Collect(body=body):
                return self._statements(body)
        total: Cost = FREE
        for expr in statement_expressions(statement):
            total |= self.expr(expr)[1]
        return total

    def _repeat(self, shape: Shape) -> int:
        """What follows is done for each item; what was there before is given back. Of a list of the API only what the
        rule adds to it counts: its size is in the cost."""
        outside = self._repeated
        self._repeated = min(self._repeated * _own_items(shape), STEPS + 1)
        self._step(1)
        return outside

    def _step(self, times: int) -> None:
        self.steps = min(self.steps + self._repeated * times, STEPS + 1)

    def _bind(self, variables: tuple[Binding, ...], shape: Shape) -> None:
        item = shape.item or ONE
        for variable in variables[:-1]:
            self.shapes[variable] = Shape(CHARACTERS) if isinstance(variable.type, String) else ONE
        self.shapes[variables[-1]] = item

    def function(self, function: Function) -> None:
        """A function by itself, with arguments of the usual size."""
        for parameter in function.parameters:
            self.shapes[parameter] = usual(parameter.type, parameter.name)
        self._called(function)

    def _called(self, function: Function) -> tuple[Shape, Cost]:
        total: Cost = FREE
        for let in function.lets:
            if let.value is not None:
                self.shapes[let], cost = self.expr(let.value)
                total |= cost
        shape, cost = self.expr(function.value)
        return shape, total | cost

    # ---- expressions

    def expr(self, expr: Expr) -> tuple[Shape, Cost]:
        shape, cost = self._expr(expr)
        if shape.cells > LARGEST and not isinstance(expr, Ref | Read | At):
            kind = "text" if isinstance(expr.type, String) else "list"
            mistakes.may_grow(self.report, expr.span, kind)
            return ONE, cost  # so that it is said once, not again for all that holds it
        return shape, cost

    def _expr(self, expr: Expr) -> tuple[Shape, Cost]:
        match expr:
            case Constant(value=value):
                return Shape(len(value) if isinstance(value, str) else 1), FREE
            case Ref(binding=binding):
                return self._ref(binding), FREE
            case Read(value=value, field=field):
                return usual(expr.type, field.name), self.expr(value)[1]
            case Has(value=value) | NodeScore(node=value):
                return ONE, self.expr(value)[1]
            case At(value=value, key=key):
                shape, cost = self.expr(value)
                return shape.item or ONE, cost | self.expr(key)[1]
            case In(item=item, container=container):
                shape, cost = self.expr(container)
                searched = frozenset({(shape.label,)}) if isinstance(container.type, List) and shape.label else FREE
                self._step(_own_items(shape))
                return ONE, cost | self.expr(item)[1] | searched
            case Op(operator="+", operands=(left, right)) if isinstance(expr.type, List | String):
                a, b = self.expr(left), self.expr(right)
                both = larger(a[0], b[0])
                self._step(_own_items(Shape(a[0].count + b[0].count, None, both.label)))
                return Shape(a[0].count + b[0].count, both.item, both.label), a[1] | b[1]
            case Op(operands=parts) | Logic(items=parts):
                return ONE, self._all(parts)
            case If(condition=condition, then=then, otherwise=otherwise):
                a, b = self.expr(then), self.expr(otherwise)
                return larger(a[0], b[0]), a[1] | b[1] | self.expr(condition)[1]
            case Apply():
                return self._apply(expr)
            case Invoke(function=function, arguments=arguments):
                return self._invoke(function, arguments)
            case Comprehend():
                return self._comprehend(expr)
            case ListOf(items=items):
                shapes = [self.expr(item) for item in items]
                largest = ONE
                for shape, _ in shapes:
                    largest = larger(largest, shape)
                return Shape(len(items), largest), frozenset().union(*(c for _, c in shapes))
            case MapOf(entries=entries):
                values = [self.expr(value) for _, value in entries]
                largest = ONE
                for shape, _ in values:
                    largest = larger(largest, shape)
                keys = self._all(key for key, _ in entries)
                return Shape(len(entries), largest), keys.union(*(cost for _, cost in values))
            case StructOf(fields=fields):
                return ONE, self._all(value for _, value in fields)
            case Text(parts=parts):
                return self._text(parts)
            case LetIn(binding=binding, value=value, body=body):
                self.shapes[binding], cost = self.expr(value)
                shape, inner = self.expr(body)
                return shape, cost | inner

    def _ref(self, binding: Binding) -> Shape:
        if binding not in self.shapes:
            known = binding.value is not None and binding.kind in (Kind.LET, Kind.CONST)
            shape = (
                self.expr(binding.value)[0]
                if known and binding.value is not None
                else usual(binding.type, binding.name)
            )
            self.shapes[binding] = shape
        return self.shapes[binding]

    def _all(self, parts: Iterable[Expr]) -> Cost:
        total: Cost = FREE
        for part in parts:
            total |= self.expr(part)[1]
        return total

    def _apply(self, expr: Apply) -> tuple[Shape, Cost]:
        shapes = [self.expr(a) for a in expr.arguments]
        cost: Cost = frozenset().union(*(c for _, c in shapes))
        first = shapes[0][0] if shapes else ONE
        for shape, _ in shapes:
            self._step(_own_items(shape))
        if isinstance(expr.arguments[0].type, List | Map) and first.label and expr.row.name != "size":
            cost |= {(first.label,)}
        match expr.row.name:
            case "distinct" | "values" | "trim" | "substring" | "lowerAscii" | "upperAscii":
                return first, cost
            case "keys":
                return Shape(first.count, Shape(CHARACTERS), first.label), cost
            case "split":
                return Shape(first.count + 1, ONE, "text"), cost
        return (usual(expr.type, expr.row.name) if isinstance(expr.type, List | String) else ONE), cost

    def _invoke(self, function: Function, arguments: tuple[Expr, ...]) -> tuple[Shape, Cost]:
        given = [self.expr(a) for a in arguments]
        cost: Cost = frozenset().union(*(c for _, c in given))
        for parameter, (shape, _) in zip(function.parameters, given, strict=True):
            self.shapes[parameter] = shape
        shape, inner = self._called(function)
        return shape, cost | inner

    def _comprehend(self, expr: Comprehend) -> tuple[Shape, Cost]:
        shape, cost = self.expr(expr.range)
        self._bind(expr.variables, shape)
        outside = self._repeat(shape)
        body, inner = self.expr(expr.body)
        self._repeated = outside
        cost |= times(shape.label, inner)
        if expr.kind == "map":
            return Shape(shape.count, body, shape.label), cost
        if expr.kind == "filter":
            one_key = isinstance(expr.range.type, Map) and len(expr.variables) == 1
            return Shape(shape.count, Shape(CHARACTERS) if one_key else shape.item, shape.label), cost
        return ONE, cost

    def _text(self, parts: tuple[str | Expr, ...]) -> tuple[Shape, Cost]:
        count, cost = 0, FREE
        for part in parts:
            if isinstance(part, str):
                count += len(part)
                continue
            shape, inner = self.expr(part)
            count += shape.count if isinstance(part.type, String) else 32
            cost |= inner
        self._step(count // CHARACTERS + 1)
        return Shape(max(count, 1)), cost


def _own_items(shape: Shape) -> int:
    """How many items (or pieces of a text) beyond what the API's sizes stand for."""
    if shape.label:
        return max(1, shape.count // ITEMS)
    return max(1, shape.count) if shape.item is not None else shape.count // CHARACTERS + 1
