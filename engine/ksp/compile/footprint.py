"""What a rule reads, and from that which cluster events can help a pod that it denied.

Reads are gathered from the rule with its functions put in: fields of the pod, parts of a node (of labels, allocatable
and such maps the entry, where its key is constant; the node may be one of the feasible ones that the rule goes
through), views with what their rows are read for, other objects by kind.
From the reads follow the events (`ksp.compile.events`); from how a `deny` compares them, in the plain cases, the
direction that can help (`ksp.compile.direction`): a node's sums over its pods are compared with a limit from above, so
that only a pod that leaves, or asks for less, can help.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ksp.check.parts import expressions
from ksp.check.schema import NODE
from ksp.check.stages import children
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Constant,
    Expr,
    Has,
    In,
    Kind,
    LetIn,
    NodeScore,
    Read,
    Ref,
    Rule,
    View,
)
from ksp.check.types import Map, Struct
from ksp.compile.direction import Directions, Helps
from ksp.compile.events import (
    EVERYTHING,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    OBJECT_EVENTS,
    ORDERED,
    ROWS_LESS,
    ROWS_MORE,
    head,
    of_node_part,
    of_row_part,
)
from ksp.compile.fields import FieldReads, field_reads
from ksp.compile.inline import inline


@dataclass(frozen=True, slots=True)
class ViewReads:
    """What a view reads of its rows. `ordered` if it is the first of them: then the order of the nodes matters too,
    which is another when nodes come, go, or move to another zone."""

    name: str
    relation: str
    rows: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a rule reads: parts of the pod and of a node, kinds of other objects, views; which events can help; and the
    single fields of pods, those of their lists' elements included."""

    pod: tuple[str, ...]
    node: tuple[str, ...]
    objects: tuple[str, ...]
    views: tuple[ViewReads, ...]
    events: frozenset[str]
    fields: FieldReads


@dataclass(slots=True)
class _Reads:
    pod: set[str] = field(default_factory=set)
    node: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    rows: dict[Binding, set[str]] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)


def footprint_of(rule: Rule) -> Footprint:
    """The footprint of a checked rule."""
    reads = _reads_of(rule)
    views = tuple(_view_reads(view, reads) for view in reads.views.values())
    events = _events(rule, reads, views)
    pod, node, objects = (tuple(sorted(parts)) for parts in (reads.pod, reads.node, reads.objects))
    return Footprint(pod, node, objects, views, events, field_reads(rule))


def views_of(rule: Rule) -> Mapping[str, ViewReads]:
    """What the rule reads of the rows of its views, by the views' names."""
    reads = _reads_of(rule)
    return {name: _view_reads(view, reads) for name, view in reads.views.items()}


# ---- reads

# What functions read of a pod or node that they are given as a whole.
GIVEN_WHOLE = {"Pod": ("labels", "namespace"), "Node": ("labels", "name")}


def _reads_of(rule: Rule) -> _Reads:
    reads = _Reads()
    for expr in expressions(rule):
        _gather(inline(expr), reads)
    return reads


def _gather(expr: Expr, reads: _Reads) -> None:
    """Adds what the expression reads."""
    origin = _origin(expr)
    if origin is not None and origin.path:
        _note(origin, origin.path, reads)
        return
    match expr:
        case Ref(binding=binding) if binding.kind is Kind.VIEW:
            _note_of(binding, EVERYTHING, reads)
        case Ref(binding=binding) if binding.kind in (Kind.ROOT, Kind.ROW) and binding.name != "feasible":
            _note_of(binding, EVERYTHING, reads)
        case NodeScore(node=Ref(binding=binding)):
            if binding.view is not None:
                reads.views.setdefault(binding.name, binding.view)
            return
        case LetIn(binding=binding, value=value, body=body) if isinstance(value.type, Struct):
            if value.type.name in GIVEN_WHOLE:
                _gather(inline(body, {binding: value}), reads)
                return
        case Apply(row=row, arguments=arguments):
            reads.objects.update(row.reads)
            for argument in arguments:
                _gather_argument(argument, reads)
            return
    for child in children(expr):
        _gather(child, reads)


def _gather_argument(argument: Expr, reads: _Reads) -> None:
    origin = _origin(argument)
    if origin is None or not isinstance(argument.type, Struct) or argument.type.name not in GIVEN_WHOLE:
        _gather(argument, reads)
        return
    for part in GIVEN_WHOLE[argument.type.name]:
        _note(origin, f"{origin.path}.{part}".removeprefix("."), reads)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a chain of fields starts: at a name of the root, a row or a view, or at another expression that gives a
    node, which is then one of the feasible ones. The way from there in the words of the language, and keys on it."""

    start: Expr
    path: str
    keys: tuple[Expr, ...]


def _origin(expr: Expr) -> _Origin | None:
    steps: list[str] = []
    keys: list[Expr] = []
    node: _Origin | None = None
    current = expr
    while True:
        if current.type == NODE:
            node = _Origin(current, _joined_up(steps), tuple(keys))
        match current:
            case Read(value=value, field=field_) | Has(value=value, field=field_):
                steps.append("." + field_.name)
                current = value
            case At(value=value, key=key) if isinstance(value.type, Map):
                steps.append(f'["{key.value}"]' if isinstance(key, Constant) else "[…]")
                keys.append(key)
                current = value
            case In(item=item, container=container) if isinstance(container.type, Map) and current is expr:
                steps.append(f'["{item.value}"]' if isinstance(item, Constant) else "[…]")
                keys.append(item)
                current = container
            case Ref(binding=binding) if binding.kind in (Kind.ROOT, Kind.ROW, Kind.VIEW):
                return _Origin(current, _joined_up(steps), tuple(keys))
            case _:
                return node


def _joined_up(steps: list[str]) -> str:
    return "".join(reversed(steps)).removeprefix(".")


def _note(origin: _Origin, path: str, reads: _Reads) -> None:
    match origin.start:
        case Ref(binding=binding) if binding.kind in (Kind.ROOT, Kind.ROW, Kind.VIEW):
            _note_of(binding, path, reads)
        case other:
            reads.node.add(path)
            for child in children(other):
                _gather(child, reads)
    for key in origin.keys:
        _gather(key, reads)


def _note_of(root: Binding, path: str, reads: _Reads) -> None:
    if root.view is not None:
        reads.views.setdefault(root.name, root.view)
        if root.view.form == "first":  # its value is a row
            reads.rows.setdefault(root.view.joins[0].variable, set()).add(path)
    elif root.kind is Kind.ROW:
        reads.rows.setdefault(root, set()).add(path)
    elif root.name == "pod":
        reads.pod.add(path)
    elif root.name == "node":
        reads.node.add(path)
    elif root.name == "cluster":
        reads.objects.add(head(path).split(".", maxsplit=1)[0])


def _view_reads(view: View, reads: _Reads) -> ViewReads:
    """What the view reads of a row: of its lists' elements as parts of the list."""
    paths = set(reads.rows.get(view.joins[0].variable, ()))
    for join in view.joins[1:]:
        origin = _origin(inline(join.range)) if join.range is not None else None
        if origin is not None and isinstance(origin.start, Ref) and origin.start.binding.kind is Kind.ROW:
            paths |= {f"{origin.path}[…].{part}" for part in reads.rows.get(join.variable, ()) if part != EVERYTHING}
    return ViewReads(view.name, view.relation, tuple(sorted(paths)), view.form == "first")


# ---- events


def _events(rule: Rule, reads: _Reads, views: Iterable[ViewReads]) -> frozenset[str]:
    """The cluster events after which a pod that the rule denied may be admitted. A new node always may. A priority
    denies nobody."""
    if rule.kind != "predicate":
        return frozenset()
    events, directions = {NODE_ADD}, Directions(rule)
    for part in reads.node:
        name = head(part)
        events |= _in_direction(directions, name, *ORDERED[name]) if name in ORDERED else of_node_part(part)
    for kind in reads.objects:
        name = OBJECT_EVENTS[kind]
        events |= {f"{name}Add", f"{name}Update", f"{name}Delete"}
    for view in views:
        events |= _view_events(view, reads.views[view.name], directions)
    return frozenset(events)


def _in_direction(directions: Directions, name: str, more: frozenset[str], less: frozenset[str]) -> frozenset[str]:
    """Of the events that make more, or less, of what the rule calls so: those that can help."""
    match directions.helps(name):
        case Helps.NOTHING:
            return frozenset()
        case Helps.LESS:
            return less
        case Helps.MORE:
            return more
        case Helps.EITHER:
            return more | less


def _view_events(found: ViewReads, view: View, directions: Directions) -> frozenset[str]:
    """A view changes when rows come and go, and with what it reads of them. Of a count it can be said which helps."""
    more, less = ROWS_MORE[found.relation], ROWS_LESS[found.relation]
    of_part = of_node_part if found.relation == "nodes" else of_row_part
    rows = _in_direction(directions, found.name, more, less) if view.form == "count" else more | less
    order = {NODE_DELETE, NODE_LABEL} if found.ordered else frozenset()
    return rows.union(order, *(of_part(part) for part in found.rows))
