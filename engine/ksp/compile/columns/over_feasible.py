"""Sums, counts and views over the feasible nodes, in the column functions that get exactly these as rows.

What an expression asks of all of them is one value, computed before any row is looked at: `Reductions.rewritten` puts a
name in its place. What has no form here is left to the scalar code, which goes through `feasible`, the list of nodes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from ksp.check.schema import NODE
from ksp.check.typed import Apply, Binding, Comprehend, Expr, If, Kind, ListOf, Logic, Ref, Stage, View
from ksp.check.types import Double, List
from ksp.compile import code
from ksp.compile.columns.reads import UnfitError
from ksp.compile.columns.scope import ROWS, Scope, is_number
from ksp.compile.columns.values import Values
from ksp.compile.emit import Chain
from ksp.compile.inline import inline, replaced
from ksp.compile.places import Block, key_of

FUNCTIONS = {"sum": "_sum_of", "min": "_smallest_row", "max": "_largest_row"}
NONE: ast.expr = code.constant(None)


@dataclass(frozen=True, slots=True)
class Spine:
    """A list over the feasible nodes: `value` of each for which the `filters` hold; both read it as `node`."""

    filters: tuple[Expr, ...]
    value: Expr


class Reductions:
    """Writes what is asked of all rows into one column function."""

    def __init__(self, scope: Scope, values: Values, chain: Chain) -> None:
        self.scope = scope
        self.values = values
        self.chain = chain
        self.node = Binding("node", Kind.ROOT, NODE, None, Stage.NODE)

    def rewritten(self, expr: Expr) -> Expr:
        """The expression with names for what is asked of all rows."""
        return replaced(expr, self._named)

    def _named(self, expr: Expr) -> Expr | None:
        match expr:
            case Ref(binding=binding) if binding.kind is Kind.VIEW and self.chain[-1].name_of(binding) is None:
                self._view(binding)
                return expr
            case Apply(row=row, arguments=(values, *_)) if row.name in ("size", *FUNCTIONS):
                return self._reduced(expr, values)
            case Comprehend(kind="all" | "exists", range=range_):
                return self._reduced(expr, range_)
        return None

    def _reduced(self, expr: Apply | Comprehend, values: Expr) -> Expr | None:
        if not isinstance(values.type, List) or self._is_of_one_row(expr):
            return None
        try:
            with self.scope.attempt(self.chain):
                spine = self._spine(values)
                if spine is None:
                    return None
                made = self._quantified(expr, spine) if isinstance(expr, Comprehend) else self._folded(expr, spine)
                name = self.scope.named(made, self.chain, "of_all")
        except UnfitError:
            return None
        found = Binding(name, Kind.LET, expr.type, expr.span, Stage.FEASIBLE)
        self.scope.frame.bind(found, name)
        return Ref(expr.span, expr.type, found)

    def _is_of_one_row(self, expr: Expr) -> bool:
        """It reads the node under test, or stands in a loop: there is no one value for all rows."""
        names = self.scope.free.through_lets(expr, self.scope.emitter.lets)
        bindings = [name for name in names if isinstance(name, Binding)]
        return any(b.kind in (Kind.VARIABLE, Kind.ROW) or key_of(b) == "node" for b in bindings)

    # ---- lists

    def _spine(self, values: Expr) -> Spine | None:
        match values:
            case Ref(binding=binding) if key_of(binding) == "feasible":
                return Spine((), Ref(values.span, NODE, self.node))
            case Ref(binding=binding) if binding in self.scope.emitter.lets:
                return self._spine(self.scope.emitter.lets[binding])
            case Comprehend(kind="filter" | "map" as kind, variables=(variable,), range=range_, body=body):
                spine = self._spine(range_) if isinstance(range_.type, List) else None
                if spine is None:
                    return None
                made = inline(body, {variable: spine.value})
                if kind == "filter":
                    return Spine((*spine.filters, made), spine.value)
                return Spine(spine.filters, made)
        return None

    def _mask(self, filters: Sequence[Expr], chain: Chain) -> ast.expr:
        if not filters:
            return NONE
        whole = filters[0] if len(filters) == 1 else Logic(filters[0].span, filters[0].type, "&&", tuple(filters))
        return self.values.array(whole, chain)

    def _folded(self, expr: Apply, spine: Spine) -> ast.expr:
        mask = self._mask(spine.filters, self.chain)
        if expr.row.name == "size":
            return code.call("_count_of", ROWS, mask)
        if not is_number(spine.value.type):
            raise UnfitError("texts of all feasible nodes")
        otherwise = [self.scope.early(self.rewritten(a), self.chain) for a in expr.arguments[1:]]
        value = self.values.array(spine.value, self.chain)
        return code.call(FUNCTIONS[expr.row.name], value, mask, *otherwise)

    def _quantified(self, expr: Comprehend, spine: Spine) -> ast.expr:
        if len(expr.variables) != 1:
            raise UnfitError("feasible nodes by index")
        holds = inline(expr.body, {expr.variables[0]: spine.value})
        if expr.kind == "exists":
            found = self._mask((*spine.filters, holds), self.chain)
            return code.compare(code.call("_count_of", ROWS, found), ast.Gt(), code.constant(0))
        mask = self.values.array(holds, self.chain)
        lacking: ast.expr = ast.UnaryOp(ast.Invert(), mask)
        if spine.filters:
            lacking = ast.BinOp(self._mask(spine.filters, self.chain), ast.BitAnd(), lacking)
        return code.compare(code.call("_count_of", ROWS, lacking), ast.Eq(), code.constant(0))

    # ---- views

    def _view(self, binding: Binding) -> None:
        """The view under a name, if it can be counted over arrays."""
        view = binding.view
        if view is None or view.relation != "feasible" or view.form == "first":
            return
        try:
            with self.scope.attempt(self.chain):
                made = self._counted(view)
        except UnfitError:
            return
        self.scope.frame.bind(binding, made)

    def _counted(self, view: View) -> str:
        row = Ref(view.span, NODE, self.node)
        names: dict[Binding, Expr] = {view.joins[0].variable: row}
        doubles = view.amount is not None and isinstance(view.amount.type, Double)
        depth, kind = code.constant(len(view.keys)), code.constant(doubles)
        tally = self.scope.named(code.call("_Tally", ROWS, depth, kind), self.chain, view.name)
        self._entries(view, tally, 1, names, self.chain)
        return self.scope.named(code.method(code.name(tally), "result"), self.chain, view.name)

    def _entries(self, view: View, tally: str, join: int, names: dict[Binding, Expr], chain: Chain) -> None:
        """The loops over the view's other lists, and in them what all rows together put in."""
        if join == len(view.joins):
            self._entry(view, tally, names, chain)
            return
        range_ = view.joins[join].range
        assert range_ is not None
        values = inline(range_, names)
        if self.scope.late(values):
            raise UnfitError("a view over lists of each feasible node")
        emitter = self.scope.emitter
        variable = view.joins[join].variable
        block = Block(chain[-1], emitter.names)
        early, inside = emitter.enter((variable,), values, block, chain)
        self._entries(view, tally, join + 1, names, inside)
        run = emitter.run(values, (variable,), [block.names[variable]], early, chain, ordered=False)
        columns = early.columns if early is not None else []
        self.scope.here(chain).lines.append(
            ast.For(code.target([block.names[variable], *columns]), run, block.lines, [])
        )

    def _entry(self, view: View, tally: str, names: dict[Binding, Expr], chain: Chain) -> None:
        keys = [inline(key, names) for key in view.keys]
        if not keys:
            raise UnfitError("a view that is one number")
        where = [inline(view.where, names)] if view.where is not None else []
        amount = NONE if view.amount is None else self.values.array(inline(view.amount, names), chain)
        path = code.tuple_of([self._early(key, chain) for key in keys[:-1]])
        part = self.scope.reader.text(keys[-1])
        if part is not None:
            mask = self._mask(where, self.scope.inside(where, chain) if where else chain)
            made = self.scope.part(part, chain)
            add: ast.expr = code.method(code.name(tally), "add_text", mask, path, made, amount)
        else:
            add = self._by_parts(tally, keys[-1], where, path, amount, chain)
        self.scope.here(chain).lines.append(ast.Expr(add))

    def _by_parts(
        self, tally: str, key: Expr, where: list[Expr], path: ast.expr, amount: ast.expr, chain: Chain
    ) -> ast.expr:
        """Rows by a key that is made of parts. The condition is asked with the key, if it reads nothing else."""
        keys: Expr = ListOf(key.span, List(key.type), (key,))
        mask = NONE
        reads = self.scope.reader.of(key, *where)
        if where and not (reads.whole or reads.maps):
            keys = If(key.span, keys.type, where[0], keys, ListOf(key.span, keys.type, ()))
        elif where:
            mask = self._mask(where, chain)
            reads = self.scope.reader.of(key)
        if reads.whole or reads.maps:
            raise UnfitError("a key that differs from node to node")
        parts, keys_of = self.scope.parts(reads, chain), self.scope.function(keys, chain, "keys_of")
        return code.method(code.name(tally), "add_parts", mask, path, parts, keys_of, amount)

    def _early(self, key: Expr, chain: Chain) -> ast.expr:
        if self.scope.late(key):
            raise UnfitError("a key that differs from node to node")
        return self.scope.early(key, chain)
