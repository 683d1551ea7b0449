"""The code of views: for each a function that gives what one row contributes, and the values on which it depends.

What a view's expressions need of the pod is computed before the function, by name; the values under these names are the
key by which the view's table is found again, for this pod and for every other that has the same values. A second
function says in which pods a new table has to look (`ksp.compile.searches`).

A view over terms of running pods that holds them against the incoming pod, `t in p.requiredAntiAffinity where
t.matches(pod)`, depends on which of the terms present match: their ids take the place of the condition, so that pods
whose labels differ in what no term asks for share the table. If there are none, the view is empty.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ksp.check.stages import free_bindings, walk
from ksp.check.typed import Apply, Binding, Constant, Expr, Has, Join, Kind, Logic, Read, Ref, Rule, View
from ksp.check.types import BOOL
from ksp.compile import code
from ksp.compile.emit import Chain, Emitter
from ksp.compile.footprint import ViewReads, views_of
from ksp.compile.inline import inline
from ksp.compile.node_parts import ANYTHING, EVERYTHING, parts_of, parts_read
from ksp.compile.places import Column, Frame, Inner, Place, key_of
from ksp.compile.possible import Possible, both
from ksp.compile.searches import SearchCode
from ksp.compile.tables import ViewPlan
from ksp.compile.zeros import EMPTY_MAP
from ksp.model.info import EMPTY_NODE, EMPTY_POD, affinity_term_matches

INDEXED = {
    "requiredAffinity": "required_affinity",
    "requiredAntiAffinity": "required_anti_affinity",
    "preferredAffinity": "preferred_affinity",
    "preferredAntiAffinity": "preferred_anti_affinity",
}
NONE = code.constant(None)

Joins = list[tuple[Join, Expr | None]]


@dataclass(frozen=True, slots=True)
class _Terms:
    """A list of terms of a row that is held against the incoming pod: `ids` names those that match it."""

    variable: Binding
    field: str
    ids: str


@dataclass(slots=True)
class _Parts:
    """A view with its functions put in: `conditions` are those that are left to be asked of a row."""

    view: View
    joins: Joins
    conditions: list[Expr]
    early: _Early
    terms: _Terms | None = None

    @property
    def row(self) -> Binding:
        return self.view.joins[0].variable


class ViewCode:
    """Makes the code of the views of one rule, each when it is first read."""

    def __init__(self, emitter: Emitter, rule: Rule) -> None:
        self.emitter = emitter
        self.rule = rule

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
        parts = _Parts(view, joins, conditions, _Early(view.joins[0].variable, joins))
        plan = self.emitter.constant(self._plan(parts), f"view_{view.name}")
        if view.relation == "feasible":
            contribute, _ = self._contribute(parts, self.emitter.until(home, chain))
            home.lines.append(contribute)
            return code.call("_tally", plan, code.name(contribute.name), code.name("feasible"))
        pod = self._frame("pod", chain)
        outer = self.emitter.until(pod, chain)
        parts.terms = self._held_against_pod(parts, pod)
        guard = self._guard(parts, outer)
        contribute, frame = self._contribute(parts, outer)
        candidates = self._candidates(parts, outer)
        pod.lines += [contribute, *candidates]
        of: ast.expr = code.tuple_of(self._captured(contribute, frame))
        if guard is not None:
            of = ast.IfExp(guard, of, NONE)
        key = code.name(pod.assign(of, f"of_{view.name}"))
        names = [code.name(function.name) for function in (contribute, *candidates)]
        found = code.method(code.name("views"), "view", plan, key, *names)
        if guard is None:
            return found
        return ast.IfExp(code.compare(key, ast.IsNot(), NONE), found, self._empty(view))

    def _empty(self, view: View) -> ast.expr:
        if view.form == "first":
            return self.emitter.constant(EMPTY_NODE if view.relation == "nodes" else EMPTY_POD, "no_row")
        return self.emitter.constant(EMPTY_MAP, "nothing") if view.keys else code.constant(0)

    # ---- what is known of it

    def _plan(self, parts: _Parts) -> ViewPlan:
        view = parts.view
        lists = [range_ for _, range_ in parts.joins if range_ is not None]
        keys = [inline(key) for key in view.keys]
        expressions = [*lists, *parts.conditions, *keys, *([inline(view.amount)] if view.amount else [])]
        reads = [part for expr in expressions for part in walk(expr)]
        objects = {r.field.name for r in reads if isinstance(r, Read | Has) and r.field.owner == "cluster"}
        objects |= {kind for part in reads if isinstance(part, Apply) for kind in part.row.reads}
        listed = [INDEXED[name] for range_ in lists if (name := _list_of(range_, parts.row)) in INDEXED]
        return ViewPlan(
            view.name,
            view.relation,
            view.form,
            len(view.keys),
            listed[0] if listed and view.relation == "pods" else "",
            frozenset(objects),
            _node_parts(self._reads[view.name]) if view.relation != "feasible" else frozenset(),
        )

    @cached_property
    def _reads(self) -> Mapping[str, ViewReads]:
        return views_of(self.rule)

    def _held_against_pod(self, parts: _Parts, pod: Frame) -> _Terms | None:
        """If terms of a row are held against the incoming pod: the condition is answered by ids of terms instead."""
        if parts.view.relation != "pods":
            return None
        lists = {join.variable: _list_of(range_, parts.row) for join, range_ in parts.joins[1:] if range_ is not None}
        for condition in parts.conditions:
            match condition:
                case Apply(row=function, arguments=(Ref(binding=term), Ref(binding=held))):
                    listed = INDEXED.get(lists.get(term, ""))
                    if function.run is affinity_term_matches and key_of(held) == "pod" and listed is not None:
                        asked = code.method(code.name("cluster"), "matching", code.constant(listed), code.name("pod"))
                        parts.conditions.remove(condition)
                        return _Terms(term, listed, pod.assign(asked, "matching"))
        return None

    # ---- where rows are looked for

    def _candidates(self, parts: _Parts, chain: Chain) -> list[ast.FunctionDef]:
        """A function that gives the pods that can contribute, if they can be told from others by an index."""
        if parts.view.relation != "pods":
            return []
        frame = Frame(chain[-1], self.emitter.names)
        if parts.terms is not None:
            asked = [code.constant(parts.terms.field), code.name(parts.terms.ids)]
            found: ast.expr = code.method(code.name("cluster"), "holders", *asked)
        else:
            search = SearchCode(self.emitter, parts.row, parts.early)
            wanted = search.of_view(parts.joins, parts.conditions, (*chain, frame))
            if wanted is None:
                return []
            found = code.method(code.name("cluster"), "pods_where", wanted)
        frame.lines.append(code.return_(found))
        return [code.function(self.emitter.names.fresh(f"{parts.view.name}_among"), [], frame.lines)]

    # ---- what a row contributes

    def _contribute(self, parts: _Parts, chain: Chain) -> tuple[ast.FunctionDef, Frame]:
        emitter, view, row = self.emitter, parts.view, parts.row
        frame = Frame(chain[-1], emitter.names)
        frame.names[row] = emitter.names.fresh(row.name)
        inside: Chain = (*chain, frame)
        waiting = list(parts.conditions)
        tests = [emitter.expr(c, inside) for c in _ready(waiting, {row})]
        if tests:
            refuse = code.if_(code.not_(_and(tests)), [code.return_(code.tuple_of([]))])
            frame.lines.append(refuse)
        if view.form == "first":
            frame.lines.append(code.return_(code.tuple_of([code.tuple_of([])])))
        else:
            frame.lines.append(code.return_(self._entries(parts, waiting, inside)))
        name = emitter.names.fresh(f"{view.name}_of")
        return code.function(name, [frame.names[row]], frame.lines), frame

    def _entries(self, parts: _Parts, waiting: list[Expr], inside: Chain) -> ast.expr:
        loops: list[_Loop] = []
        bound = {parts.row}
        for join, range_ in parts.joins[1:]:
            assert range_ is not None
            body = Inner(inside[-1], self.emitter.names)
            column, within = self.emitter.enter((join.variable,), range_, body, inside)
            bound.add(join.variable)
            tests = [self.emitter.expr(c, within) for c in _ready(waiting, bound)]
            loops.append(_Loop(join.variable, range_, column, body, inside, tests))
            inside = within
        entry = self._entry(parts.view, inside)
        made: list[ast.comprehension] = []
        for loop in reversed(loops):
            loop.used = code.read_in([entry, *loop.tests, *loop.body.clauses, *made])
            made = [*self._clauses(loop, parts), *made]
        return ast.ListComp(entry, made) if made else code.tuple_of([entry])

    def _clauses(self, loop: _Loop, parts: _Parts) -> list[ast.comprehension]:
        names: Sequence[str] = [loop.body.names[loop.variable]]
        if parts.terms is not None and parts.terms.variable is loop.variable:
            asked = (code.constant(parts.terms.field), code.name(loop.outer[-1].names[parts.row]))
            values: ast.expr = code.method(code.name("cluster"), "among", *asked, code.name(parts.terms.ids))
        else:
            names, values = self.emitter.bring(
                loop.range, (loop.variable,), names, loop.column, loop.outer, loop.used, ordered=False
            )
        made = [code.clause(names, values), *loop.body.clauses]
        made[-1].ifs.extend(loop.tests)
        return made

    def _entry(self, view: View, chain: Chain) -> ast.expr:
        keys = code.tuple_of([self.emitter.expr(inline(key), chain) for key in view.keys])
        if view.amount is None:
            return keys
        return code.tuple_of([keys, self.emitter.expr(inline(view.amount), chain)])

    # ---- what it depends on

    def _guard(self, parts: _Parts, chain: Chain) -> ast.expr | None:
        """Whether any row can contribute, as far as the pod tells; None if that is not known."""
        possible = Possible(parts.early)
        conditions = parts.conditions
        guard: Expr | None = None
        if conditions:
            guard = both(conditions[0], [possible.may_be(condition, value=True) for condition in conditions])
        for join, range_ in reversed(parts.joins[1:]):
            if range_ is not None and parts.early(range_):
                body = guard if guard is not None else _true(range_)
                guard = possible.exists_over(range_, join.variable, body)
        ids: list[ast.expr] = [code.name(parts.terms.ids)] if parts.terms is not None else []
        certain = guard is None or (isinstance(guard, Constant) and bool(guard.value))
        tests = ids if guard is None or certain else [*ids, self.emitter.expr(guard, chain)]
        return _and(tests) if tests else None

    def _captured(self, function: ast.FunctionDef, frame: Frame) -> list[ast.expr]:
        """The names of the pod's frame and of the parameters' that the function reads."""
        outer = {name for place in (frame.parent.lineage() if frame.parent else ()) for name in _values(place)}
        read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} & outer
        captured: list[ast.expr] = []
        for name in sorted(read):
            if name == "pod" or name in self.emitter.with_objects:
                captured.append(code.call("_identity", code.name(name)))
            elif name not in ("cluster", "trace") and name not in self.emitter.live:
                captured.append(code.name(name))
        return captured


@dataclass(slots=True)
class _Loop:
    """One `x in LIST` of a view on its way to a clause. `used` are the names that it and what is within it read."""

    variable: Binding
    range: Expr
    column: Column | None
    body: Inner
    outer: Chain
    tests: list[ast.expr]
    used: set[str] = field(default_factory=set)


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


def _ready(waiting: list[Expr], bound: set[Binding]) -> list[Expr]:
    """The conditions of which all rows and elements are bound; they wait no longer."""
    ready = [c for c in waiting if all(b in bound for b in free_bindings(c) if b.kind is Kind.ROW)]
    waiting[:] = [c for c in waiting if c not in ready]
    return ready


def _list_of(range_: Expr, row: Binding) -> str:
    """The name of the row's own list that this is, "" if it is another."""
    match range_:
        case Read(value=Ref(binding=binding), field=field) if binding is row:
            return field.name
    return ""


def _node_parts(reads: ViewReads) -> frozenset[str]:
    """The parts of nodes that a view's rows are read for: their own, or those of the nodes that pods run on. A node
    keeps its name, and the pods of one that comes or goes come and go themselves."""
    if reads.relation != "pods":
        return parts_read(reads.rows) | {ANYTHING}
    found: set[str] = set()
    for path in reads.rows:
        if path in ("*", "node"):
            found |= EVERYTHING
        elif path.startswith("node."):
            found |= parts_of(path.removeprefix("node."))
    return frozenset(found - {"name", ANYTHING})
