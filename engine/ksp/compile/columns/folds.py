"""Lists to code over arrays: loops over what is known early, each turn of them over all rows.

`Folds.each` writes the loop over a list, with `filter` and `map` on the way; an item that not all rows have comes with
the mask of those that have it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ksp.check.stages import walk
from ksp.check.typed import Apply, Binding, Comprehend, Expr, Kind, ListOf, Logic, Op, Read, Ref, Stage
from ksp.check.types import Double, List
from ksp.compile import code
from ksp.compile.columns.reads import UnfitError, is_node
from ksp.compile.columns.scope import ROWS, Scope, is_number
from ksp.compile.emit import Chain
from ksp.compile.inline import inline
from ksp.compile.places import Block, Branch

if TYPE_CHECKING:
    from ksp.compile.columns.values import Values

Named = Mapping[Binding, Expr]
# Gets the chain inside of the loop, the mask or None, and what stands for the variables there.
Turn = Callable[[Chain, ast.expr | None, Named], None]


class Folds:
    """Writes loops."""

    def __init__(self, scope: Scope, values: Values) -> None:
        self.scope = scope
        self.values = values

    # ---- what becomes of a list

    def quantified(self, expr: Comprehend, chain: Chain) -> ast.expr:
        """`all`, `exists`, `exists_one`."""
        counting = expr.kind == "exists_one"
        start = code.constant(0 if counting else expr.kind == "all")
        found = self.scope.named(start, chain, "found")

        def turn(inside: Chain, mask: ast.expr | None, named: Named) -> None:
            holds = self.values.operand(inline(expr.body, named), inside)
            operator: ast.operator = ast.Add() if counting else ast.BitOr()
            if expr.kind == "all":
                operator = ast.BitAnd()
                holds = holds if mask is None else ast.BinOp(holds, ast.BitOr(), ast.UnaryOp(ast.Invert(), mask))
            elif mask is not None:
                holds = ast.BinOp(mask, ast.BitAnd(), holds)
            self._update(found, ast.BinOp(code.name(found), operator, holds), inside)

        self.each(expr.range, expr.variables, chain, turn)
        if counting:
            return code.compare(self._result(found), ast.Eq(), code.constant(1))
        return self._result(found)

    def folded(self, expr: Apply, chain: Chain) -> ast.expr:
        """`size`, `sum`, `min(otherwise)` and `max(otherwise)` of a list."""
        values = expr.arguments[0]
        assert isinstance(values.type, List)
        if expr.row.name == "size":
            return self._size(values, chain)
        if not is_number(values.type.item):
            raise UnfitError(f"`{expr.row.name}()` of texts")
        if expr.row.name == "sum":
            return self._sum(expr, values, chain)
        return self._extreme(expr, values, chain)

    def _size(self, values: Expr, chain: Chain) -> ast.expr:
        count = self.scope.named(code.constant(0), chain, "count")

        def turn(inside: Chain, mask: ast.expr | None, _: Named) -> None:
            more = code.constant(1) if mask is None else mask
            self._update(count, ast.BinOp(code.name(count), ast.Add(), more), inside)

        self._each_value(values, chain, turn)
        return self._result(count)

    def _sum(self, expr: Apply, values: Expr, chain: Chain) -> ast.expr:
        """From the left."""
        doubles = isinstance(expr.type, Double)
        self.scope.noisy |= doubles
        total = self.scope.named(code.constant(0.0 if doubles else 0), chain, "total")
        item = self._item(values)

        def turn(inside: Chain, mask: ast.expr | None, named: Named) -> None:
            value = inline(Ref(values.span, item.type, item), named)
            if doubles:
                more: ast.expr = ast.BinOp(code.name(total), ast.Add(), self.values.operand(value, inside))
                made = more if mask is None else code.call("_where", mask, more, code.name(total))
            else:
                amount = self.values.array(value, inside) if mask is None else self.values.operand(value, inside)
                more = amount if mask is None else code.call("_where", mask, amount, code.constant(0))
                made = ast.BinOp(code.name(total), ast.Add(), more)
            self._update(total, made, inside)

        self.each(values, (item,), chain, turn)
        return self._result(total)

    def _extreme(self, expr: Apply, values: Expr, chain: Chain) -> ast.expr:
        best = self.scope.named(code.call("_least" if expr.row.name == "min" else "_most"), chain, "best")
        item = self._item(values)

        def turn(inside: Chain, mask: ast.expr | None, named: Named) -> None:
            value = self.values.array(inline(Ref(values.span, item.type, item), named), inside)
            added = code.method(code.name(best), "add", value, mask or code.constant(None))
            self.scope.here(inside).lines.append(ast.Expr(added))

        self.each(values, (item,), chain, turn)
        return code.method(code.name(best), "result", ROWS, self.values.operand(expr.arguments[1], chain))

    def listed(self, values: Expr, chain: Chain) -> ast.expr:
        """A Python list of the items, which all rows have: each an array, or a number."""
        assert isinstance(values.type, List)
        if not is_number(values.type.item):
            raise UnfitError("elements of a list that differ from node to node")
        binding = values.binding if isinstance(values, Ref) else None
        known = self.scope.array_of(binding, chain) if binding is not None else None
        if known is not None:
            return code.name(known)
        at = self.scope.inside([values], chain)
        found = self.scope.named(ast.List([], ast.Load()), at, binding.name if binding is not None else "items")
        item = self._item(values)

        def turn(inside: Chain, mask: ast.expr | None, named: Named) -> None:
            if mask is not None:
                raise UnfitError("elements by index of a list whose length differs from node to node")
            value = self.values.operand(inline(Ref(values.span, item.type, item), named), inside)
            self.scope.here(inside).lines.append(ast.Expr(code.method(code.name(found), "append", value)))

        self.each(values, (item,), at, turn)
        return self.scope.keep_array(binding, code.name(found), at) if binding is not None else code.name(found)

    def fields(self, values: Expr, read: Read, chain: Chain) -> ast.expr:
        """A tuple of one field of each struct of a list that is known early."""
        item = self._item(values)
        element = Ref(values.span, item.type, item)
        body = Read(read.span, read.type, element, read.field)
        return self.scope.early(Comprehend(read.span, List(read.type), "map", (item,), values, body), chain)

    def _item(self, values: Expr) -> Binding:
        assert isinstance(values.type, List)
        return Binding("item", Kind.VARIABLE, values.type.item, values.span, Stage.NODE)

    def _update(self, name: str, value: ast.expr, chain: Chain) -> None:
        self.scope.here(chain).lines.append(code.assign(name, value))

    def _result(self, name: str) -> ast.expr:
        return code.call("_as_array", ROWS, code.name(name))

    # ---- loops

    def _each_value(self, values: Expr, chain: Chain, turn: Turn) -> None:
        """A loop that does not look at the items."""
        self.each(values, (self._item(values),), chain, turn)

    def each(self, values: Expr, variables: Sequence[Binding], chain: Chain, turn: Turn) -> None:
        """The loop over a list or map. Raises UnfitError if what it runs over has another form for each node."""
        if not self.scope.late(values):
            self._early(values, variables, chain, turn)
            return
        values = self.scope.reader.resolved(values)
        match values:
            case Comprehend(kind="filter", variables=(own,)) if len(variables) == 1 and isinstance(values.type, List):
                self._filtered(values, own, variables[0], chain, turn)
            case Comprehend(kind="map"):
                self._mapped(values, variables, chain, turn)
            case Op(operator="+", operands=parts) if len(variables) == 1:
                for part in parts:
                    self.each(part, variables, chain, turn)
            case ListOf(items=items) if len(variables) == 1:
                for item in items:
                    turn(chain, None, {variables[0]: self._named(item)})
            case _:
                raise UnfitError(self._culprit(values))

    def _culprit(self, values: Expr) -> str:
        """What makes the list differ from node to node."""
        for part in walk(values):
            if isinstance(part, Apply) and any(is_node(argument) for argument in part.arguments):
                return f"`{part.row.name}(…)` reads each node as a whole"
            if isinstance(part, Ref) and part is not values and self.scope.reader.resolved(part) is not part:
                return self._culprit(self.scope.reader.resolved(part))
        return "lists that differ from node to node"

    def _named(self, value: Expr) -> Expr:
        """Something that can be read several times, and is computed once."""
        return Ref(value.span, value.type, self.scope.let(value)) if self.scope.late(value) else value

    def _early(self, values: Expr, variables: Sequence[Binding], chain: Chain, turn: Turn) -> None:
        emitter = self.scope.emitter
        block = Block(chain[-1], emitter.names)
        early, inside = emitter.enter(variables, values, block, chain)
        turn(inside, None, {})
        names = [block.names[v] for v in variables]
        run = emitter.run(values, variables, names, early, chain, ordered=True)
        columns = early.columns if early is not None else []
        self.scope.here(chain).lines.append(ast.For(code.target([*names, *columns]), run, block.lines, []))

    def _filtered(self, values: Comprehend, own: Binding, variable: Binding, chain: Chain, turn: Turn) -> None:
        """The items for which the condition holds: what it asks before it looks at nodes leaves out whole turns."""

        def kept(inside: Chain, mask: ast.expr | None, named: Named) -> None:
            item = inline(Ref(values.span, variable.type, variable), named)
            condition = inline(values.body, {own: item})
            items = condition.items if isinstance(condition, Logic) and condition.operator == "&&" else (condition,)
            early = [self.scope.early(item, inside) for item in items if not self.scope.late(item)]
            here = self.scope.here(inside)
            branch = Branch(here, self.scope.emitter.names)
            within = (*inside, branch) if early else inside
            for test in (test for test in items if self.scope.late(test)):
                holds = self.values.array(test, within)
                both = holds if mask is None else ast.BinOp(mask, ast.BitAnd(), holds)
                mask = self.scope.kept(both, within, "here")
            turn(within, mask, named)
            if early:
                whole = early[0] if len(early) == 1 else ast.BoolOp(ast.And(), early)
                here.lines.append(code.if_(whole, branch.lines or [ast.Pass()]))

        self.each(values.range, (variable,), chain, kept)

    def _mapped(self, values: Comprehend, variables: Sequence[Binding], chain: Chain, turn: Turn) -> None:
        """The value of the body for each item."""
        own: Sequence[Binding] = values.variables
        if len(variables) == 2:
            if not isinstance(values.range.type, List):
                raise UnfitError("items with indexes of what is made of a map for each node")
            own = own if len(own) == 2 else (variables[0], own[0])

        def made(inside: Chain, mask: ast.expr | None, named: Named) -> None:
            body = inline(values.body, named)
            result = dict(named)
            if len(variables) == 2 and len(values.variables) == 2:
                result[variables[0]] = inline(Ref(values.span, own[0].type, own[0]), named)
            turn(inside, mask, {**result, variables[-1]: self._named(body)})

        self.each(values.range, own, chain, made)
