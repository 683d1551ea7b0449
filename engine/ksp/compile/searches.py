"""The code of searches: what of a view's conditions an index of pods can answer, computed for the pod at hand.

A condition that holds a row's namespace or labels against what is known before any row becomes a call of
`ksp.compile.narrow`; `&&`, `||`, a choice whose condition is known early, and `all` and `exists` over what is known
early put such calls together. All other conditions narrow nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from ksp.check.stages import free_bindings
from ksp.check.typed import Apply, At, Binding, Comprehend, Expr, If, Join, Kind, LetIn, Logic, Op, Read, Ref
from ksp.compile import code
from ksp.compile.emit import Chain, Emitter
from ksp.compile.inline import inline
from ksp.compile.places import Inner
from ksp.model.info import affinity_term_matches
from ksp.model.selector import label_selector_matches

Searched = ast.expr | None  # None: it narrows nothing
Joins = Sequence[tuple[Join, Expr | None]]


class SearchCode:
    """Makes the search for the rows of one view over pods. `early` tells what does not depend on the row."""

    def __init__(self, emitter: Emitter, row: Binding, early: Callable[[Expr], bool]) -> None:
        self.emitter = emitter
        self.row = row
        self.early = early

    def of_view(self, joins: Joins, conditions: Sequence[Expr], chain: Chain) -> Searched:
        """Where the rows are that can contribute."""
        parts = [self._of(c, chain) for c in conditions if _elements(c) <= {self.row}]
        for join, range_ in joins[1:]:
            if range_ is not None and self.early(range_) and not _elements(range_):
                mine = [c for c in conditions if _elements(c) - {self.row} == {join.variable}]
                parts.append(self._over("_either", join.variable, range_, mine, chain))
        return _together(parts)

    def _of(self, expr: Expr, chain: Chain) -> Searched:
        match expr:
            case Op(operator="==", operands=(one, other)):
                return self._equal(one, other, chain) or self._equal(other, one, chain)
            case Apply(row=row, arguments=(asked, held)) if self.early(asked):
                return self._matches(row.run, asked, held, chain)
            case Logic(operator="&&", items=items):
                return _together([self._of(item, chain) for item in items])
            case Logic(items=items):
                return _one_of([self._alternative(item, chain) for item in items])
            case If(condition=condition, then=then, otherwise=otherwise) if self.early(condition):
                found = self._of(then, chain), self._of(otherwise, chain)
                if found == (None, None):
                    return None
                made = [code.constant(None) if part is None else part for part in found]
                return ast.IfExp(self.emitter.expr(condition, chain), made[0], made[1])
            case Comprehend(kind="all" | "exists" as kind, variables=(variable,), range=range_, body=body):
                if self.early(range_):
                    return self._over("_both" if kind == "all" else "_either", variable, range_, [body], chain)
            case LetIn(binding=binding, value=value, body=body):
                return self._of(inline(body, {binding: value}), chain)
        return None

    def _alternative(self, expr: Expr, chain: Chain) -> Searched:
        """One side of `||`: where it does not hold for any row it adds none."""
        if self.early(expr):
            return ast.IfExp(self.emitter.expr(expr, chain), code.constant(None), code.tuple_of([]))
        return self._of(expr, chain)

    def _equal(self, mine: Expr, other: Expr, chain: Chain) -> Searched:
        if not self.early(other):
            return None
        if self._is_of_row(mine, "namespace"):
            return code.call("_in_namespace", self.emitter.expr(other, chain))
        match mine:
            case At(value=labels, key=key) if self._is_of_row(labels, "labels") and self.early(key):
                return code.call("_labelled", self.emitter.expr(key, chain), self.emitter.expr(other, chain))
        return None

    def _matches(self, run: object, asked: Expr, held: Expr, chain: Chain) -> Searched:
        if run is label_selector_matches and self._is_of_row(held, "labels"):
            return code.call("_selected", self.emitter.expr(asked, chain))
        if run is affinity_term_matches and isinstance(held, Ref) and held.binding is self.row:
            return code.call("_about", self.emitter.expr(asked, chain))
        return None

    def _over(self, joined: str, variable: Binding, range_: Expr, bodies: Sequence[Expr], chain: Chain) -> Searched:
        """`all` or `exists` over what is known early."""
        inner = Inner(chain[-1], self.emitter.names)
        inner.names[variable] = self.emitter.names.fresh(variable.name)
        body = _together([self._of(expr, (*chain, inner)) for expr in bodies])
        if body is None:
            return None
        values = self.emitter.expr(range_, chain)
        return code.call(joined, ast.ListComp(body, [code.clause([inner.names[variable]], values), *inner.clauses]))

    def _is_of_row(self, expr: Expr, name: str) -> bool:
        match expr:
            case Read(value=Ref(binding=binding), field=field):
                return binding is self.row and field.owner == "Pod" and field.name == name
        return False


def _elements(expr: Expr) -> set[Binding]:
    """The rows and elements of lists that the expression names."""
    return {binding for binding in free_bindings(expr) if binding.kind is Kind.ROW}


def _together(parts: Iterable[Searched]) -> Searched:
    found = [part for part in parts if part is not None]
    if len(found) < 2:
        return found[0] if found else None
    return code.call("_both", code.tuple_of(found))


def _one_of(parts: Sequence[Searched]) -> Searched:
    found = [part for part in parts if part is not None]
    return code.call("_either", code.tuple_of(found)) if len(found) == len(parts) else None
