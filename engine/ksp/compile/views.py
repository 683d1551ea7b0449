"""The code of views: for each a function that gives what one row contributes, and the values on which it depends.

What a view's expressions need of the pod is computed before the function, by name; the values under these names are the
key by which the view's table is found again, for this pod and for every other that has the same values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from ksp.check.stages import free_bindings, walk
from ksp.check.typed import Apply, Binding, Constant, Expr, Has, Join, Kind, Logic, Op, Read, Ref, View
from ksp.check.types import BOOL, STRING
from ksp.compile import code
from ksp.compile.emit import Chain, Emitter
from ksp.compile.footprint import OF_PODS
from ksp.compile.inline import inline
from ksp.compile.places import Column, Frame, Inner, Place
from ksp.compile.possible import Possible, both
from ksp.compile.tables import ViewPlan
from ksp.compile.zeros import EMPTY_MAP
from ksp.model.info import EMPTY_NODE, EMPTY_POD, affinity_term_matches

INDEXED = {
    "requiredAffinity": "required_affinity",
    "requiredAntiAffinity": "required_anti_affinity",
    "preferredAffinity": "preferred_affinity",
    "preferredAntiAffinity": "preferred_anti_affinity",
}


class ViewCode:
    """Makes the code of the views of one rule, each when it is first read."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter

    def __call__(self, binding: Binding, chain: Chain) -> str:
        assert binding.view is not None
        view = binding.view
        home = self._frame("feasible" if view.relation == "feasible" else "views", chain)
        made = self._read(view, home, chain)
        name = home.assign(made, view.name)
        home.bind(binding, name)
        return name

    def _frame(self, needed: str, chain: Chain) -> Frame:
        """The outermost function in which that is known."""
        for place in chain:
            if isinstance(place, Frame) and place.name_of(needed) is not None:
                return place
        raise AssertionError(needed)

    def _read(self, view: View, home: Frame, chain: Chain) -> ast.expr:
        """The view in the frame where it is asked for. What a row contributes depends on the pod alone, and so do the
        values by which the view is found: they are made in the frame of the pod."""
        joins = [(join, inline(join.range) if join.range is not None else None) for join in view.joins]
        conditions = list(_conjuncts(inline(view.where))) if view.where is not None else []
        row = view.joins[0].variable
        early = _Early(row, joins)
        names = _first_namespace(conditions, row, early)
        plan = self._plan(view, joins, conditions, by_namespace=names is not None)
        plan_name = self.emitter.constant(plan, f"view_{view.name}")
        if view.relation == "feasible":
            contribute, _ = self._contribute(view, joins, conditions, early, self.emitter.until(home, chain))
            home.lines.append(contribute)
            return code.call("_tally", plan_name, code.name(contribute.name), code.name("feasible"))
        pod = self._frame("pod", chain)
        outer = self.emitter.until(pod, chain)
        guard = self._guard(joins, conditions, early, outer)
        contribute, frame = self._contribute(view, joins, conditions, early, outer)
        values = [self.emitter.expr(names, outer)] if names is not None else []
        pod.lines.append(contribute)
        values = [*values, *self._captured(contribute, frame)]
        certain = isinstance(guard, ast.Constant) and guard.value
        made = code.tuple_of(values)
        key = code.name(pod.assign(made if certain else ast.IfExp(guard, made, code.constant(None)), f"of_{view.name}"))
        found = code.method(code.name("views"), "view", plan_name, key, code.name(contribute.name))
        if certain:
            return found
        return ast.IfExp(code.compare(key, ast.IsNot(), code.constant(None)), found, self._empty(view))

    def _empty(self, view: View) -> ast.expr:
        if view.form == "first":
            return self.emitter.constant(EMPTY_NODE if view.relation == "nodes" else EMPTY_POD, "no_row")
        return self.emitter.constant(EMPTY_MAP, "nothing") if view.keys else code.constant(0)

    def _plan(
        self, view: View, joins: list[tuple[Join, Expr | None]], conditions: list[Expr], *, by_namespace: bool
    ) -> ViewPlan:
        lists = [range_ for _, range_ in joins if range_ is not None]
        parts = [*lists, *conditions, *(inline(k) for k in view.keys), *([inline(view.amount)] if view.amount else [])]
        reads = [part for expr in parts for part in walk(expr) if isinstance(part, Read | Has)]
        objects = frozenset(read.field.name for read in reads if read.field.owner == "cluster")
        objects |= {kind for expr in parts for part in walk(expr) if isinstance(part, Apply) for kind in part.row.reads}
        nodes = any(read.field.owner == "Pod" and read.field.name == "node" for read in reads)
        sums = any(read.field.owner == "Node" and read.field.name in OF_PODS for read in reads)
        row = view.joins[0].variable
        lists_of_row = [
            r.field.name for r in lists if isinstance(r, Read) and isinstance(r.value, Ref) and r.value.binding is row
        ]
        indexed = (
            next((INDEXED[name] for name in lists_of_row if name in INDEXED), "") if view.relation == "pods" else ""
        )
        return ViewPlan(
            view.name, view.relation, view.form, len(view.keys), by_namespace, indexed, objects, nodes, sums
        )

    # ---- what a row contributes

    def _contribute(
        self, view: View, joins: list[tuple[Join, Expr | None]], conditions: list[Expr], early: _Early, chain: Chain
    ) -> tuple[ast.FunctionDef, Frame]:
        emitter = self.emitter
        row = view.joins[0].variable
        frame = Frame(chain[-1], emitter.names)
        frame.names[row] = emitter.names.fresh(row.name)
        inside: Chain = (*chain, frame)
        waiting = list(conditions)
        tests = [emitter.expr(c, inside) for c in _ready(waiting, {row}, early)]
        if tests:
            refuse = code.if_(code.not_(_and(tests)), [code.return_(code.tuple_of([]))])
            frame.lines.append(refuse)
        if view.form == "first":
            frame.lines.append(code.return_(code.tuple_of([code.tuple_of([])])))
        else:
            frame.lines.append(code.return_(self._entries(view, joins[1:], waiting, early, inside)))
        name = emitter.names.fresh(f"{view.name}_of")
        return code.function(name, [frame.names[row]], frame.lines), frame

    def _entries(
        self, view: View, joins: list[tuple[Join, Expr | None]], waiting: list[Expr], early: _Early, inside: Chain
    ) -> ast.expr:
        loops: list[_Loop] = []
        bound = {view.joins[0].variable}
        for join, range_ in joins:
            assert range_ is not None
            body = Inner(inside[-1], self.emitter.names)
            column, within = self.emitter.enter((join.variable,), range_, body, inside)
            bound.add(join.variable)
            tests = [self.emitter.expr(c, within) for c in _ready(waiting, bound, early)]
            loops.append(_Loop(join.variable, range_, column, body, inside, tests))
            inside = within
        entry = self._entry(view, inside)
        made: list[ast.comprehension] = []
        for loop in reversed(loops):
            made = [*self._clauses(loop), *made]
        return ast.ListComp(entry, made) if made else code.tuple_of([entry])

    def _clauses(self, loop: _Loop) -> list[ast.comprehension]:
        names = [loop.body.names[loop.variable]]
        values = self.emitter.run(loop.range, (loop.variable,), names, loop.column, loop.outer, ordered=False)
        columns = loop.column.columns if loop.column is not None else []
        parts = [code.clause([*names, *columns], values), *loop.body.clauses]
        parts[-1].ifs.extend(loop.tests)
        return parts

    def _entry(self, view: View, chain: Chain) -> ast.expr:
        keys = code.tuple_of([self.emitter.expr(inline(key), chain) for key in view.keys])
        if view.amount is None:
            return keys
        return code.tuple_of([keys, self.emitter.expr(inline(view.amount), chain)])

    # ---- what it depends on

    def _guard(
        self, joins: list[tuple[Join, Expr | None]], conditions: list[Expr], early: _Early, chain: Chain
    ) -> ast.expr:
        """Whether any row can contribute, as far as the pod tells."""
        possible = Possible(early)
        if not conditions:
            guard: Expr | None = None
        else:
            guard = both(conditions[0], [possible.may_be(condition, value=True) for condition in conditions])
        for join, range_ in reversed(joins[1:]):
            if range_ is not None and early(range_):
                body = guard if guard is not None else _true(range_)
                guard = possible.exists_over(range_, join.variable, body)
        return code.constant(value=True) if guard is None else self.emitter.expr(guard, chain)

    def _captured(self, function: ast.FunctionDef, frame: Frame) -> list[ast.expr]:
        """The names of the pod's frame and of the parameters' that the function reads."""
        outer = {name for place in (frame.parent.lineage() if frame.parent else ()) for name in _values(place)}
        read = sorted(
            {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} & outer
        )
        captured: list[ast.expr] = []
        for name in read:
            if name == "pod" and self._only_matched(function):
                captured += [code.attribute(code.name("pod"), part) for part in ("namespace", "labels")]
            elif name == "pod" or name in self.emitter.with_objects:
                captured.append(code.call("_identity", code.name(name)))
            elif name not in ("cluster", "trace") and name not in self.emitter.live:
                captured.append(code.name(name))
        return captured

    def _only_matched(self, function: ast.FunctionDef) -> bool:
        """The pod is only held against terms, which read its namespace and labels."""
        matches = self.emitter.constant(affinity_term_matches, affinity_term_matches.__name__).id
        calls = (n for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
        held = {id(call.args[1]) for call in calls if isinstance(call.func, ast.Name) and call.func.id == matches}
        return all(id(n) in held for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == "pod")


@dataclass(frozen=True, slots=True)
class _Loop:
    """One `x in LIST` of a view on its way to a clause."""

    variable: Binding
    range: Expr
    column: Column | None
    body: Inner
    outer: Chain
    tests: list[ast.expr]


def _values(place: Place) -> Iterable[str]:
    return [*place.names.values(), *place.known.values()]


def _true(place: Expr) -> Expr:
    return Constant(place.span, BOOL, value=True)


def _and(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


class _Early:
    """Tells which expressions of a view do not depend on the row."""

    def __init__(self, row: Binding, joins: list[tuple[Join, Expr | None]]) -> None:
        self.of_row = {row}
        for join, range_ in joins:
            if range_ is not None and not self(range_):
                self.of_row.add(join.variable)

    def __call__(self, expr: Expr) -> bool:
        return not free_bindings(expr) & self.of_row


def _conjuncts(expr: Expr) -> Iterable[Expr]:
    if isinstance(expr, Logic) and expr.operator == "&&":
        for item in expr.items:
            yield from _conjuncts(item)
    else:
        yield expr


def _ready(waiting: list[Expr], bound: set[Binding], early: _Early) -> list[Expr]:
    """The conditions of which all rows and elements are bound; they wait no longer."""
    ready = [c for c in waiting if all(b in bound for b in free_bindings(c) if b.kind is Kind.ROW)]
    waiting[:] = [c for c in waiting if c not in ready]
    return ready


def _first_namespace(conditions: list[Expr], row: Binding, early: _Early) -> Expr | None:
    """E of a condition `p.namespace == E`, E not depending on the row."""
    for condition in conditions:
        if isinstance(condition, Op) and condition.operator == "==" and condition.operands[0].type == STRING:
            for mine, other in (condition.operands, condition.operands[::-1]):
                match mine:
                    case Read(value=Ref(binding=binding), field=field) if binding is row and field.name == "namespace":
                        if early(other) and field.owner == "Pod" and _no_element(other):
                            return other
    return None


def _no_element(expr: Expr) -> bool:
    return not any(b.kind is Kind.ROW for b in free_bindings(expr))
