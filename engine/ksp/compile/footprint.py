"""What a rule reads, and from that which cluster events can help a pod that it denied.

Reads are gathered from the rule with its functions put in: fields of the pod, parts of a node (of labels, allocatable
and such maps the entry, where its key is constant; the node may be one of the feasible ones that the rule goes
through), views with what their rows are read for, other objects by kind.
From the reads follow the events; from how a `deny` compares them, in the plain cases, the direction that can help: a
node's sums over its pods are compared with a limit from above, so that only a pod that leaves, or asks for less, can
help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ksp.check.parts import expressions, statement_expressions
from ksp.check.schema import NODE
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
    In,
    Kind,
    LetIn,
    Logic,
    NodeScore,
    Op,
    Read,
    Ref,
    Rule,
    Statement,
    Stop,
    View,
)
from ksp.check.types import Map, Struct
from ksp.compile.fields import FieldReads, field_reads
from ksp.compile.inline import inline

# Parts of a node that are sums over its pods: they change when a pod comes or leaves.
OF_PODS = frozenset({"requested", "nonzeroRequested", "podCount", "hostPorts"})

# kube-scheduler's names of events, by what of a node they change; all other changes are NODE_UPDATE.
NODE_EVENTS = {
    "labels": "NodeLabel", "metadata.labels": "NodeLabel", "spec.taints": "NodeTaint",
    "spec.unschedulable": "NodeTaint", "allocatable": "NodeAllocatable", "status.allocatable": "NodeAllocatable",
}  # fmt: skip
NEVER_CHANGE = frozenset({"name", "uid", "metadata.name", "metadata.uid"})
OBJECT_EVENTS = {
    "services": "Service", "replicationControllers": "ReplicationController", "replicaSets": "ReplicaSet",
    "statefulSets": "StatefulSet", "persistentVolumeClaims": "PersistentVolumeClaim",
    "persistentVolumes": "PersistentVolume", "storageClasses": "StorageClass", "csiNodes": "CSINode",
}  # fmt: skip
POD_ADD = "AssignedPodAdd"
POD_UPDATE = "AssignedPodUpdate"
POD_DELETE = "AssignedPodDelete"
POD_STATUS = "AssignedPodStatus"
NODE_ADD = "NodeAdd"
NODE_UPDATE = "NodeUpdate"
NODE_DELETE = "NodeDelete"
LESS = frozenset({POD_DELETE, POD_UPDATE})  # what can make a count of pods, or a sum over them, smaller
ALL_OF_PODS = LESS | {POD_ADD}


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
    reads = _Reads()
    for expr in expressions(rule):
        _gather(inline(expr), reads)
    views = tuple(_view_reads(view, reads) for view in reads.views.values())
    events = _events(rule, reads, views)
    pod, node, objects = (tuple(sorted(parts)) for parts in (reads.pod, reads.node, reads.objects))
    return Footprint(pod, node, objects, views, events, field_reads(rule))


# ---- reads

# What functions read of a pod or node that they are given as a whole.
GIVEN_WHOLE = {"Pod": ("labels", "namespace"), "Node": ("labels", "name")}
EVERYTHING = "*"


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
        reads.objects.add(_head(path).split(".", maxsplit=1)[0])


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
    """The cluster events after which a pod that the rule denied may be admitted. A new node always may."""
    events = {NODE_ADD}
    for part in reads.node:
        head = _head(part)
        events |= LESS if head in OF_PODS and _only_less_helps(rule, head) else _node_events(part)
    for kind in reads.objects:
        name = OBJECT_EVENTS[kind]
        events |= {f"{name}Add", f"{name}Update", f"{name}Delete"}
    for view in views:
        events |= _view_events(view, reads.views[view.name], rule)
    return frozenset(events)


def _head(part: str) -> str:
    """The part without the key of an entry."""
    return part.split("[", maxsplit=1)[0]


def _node_events(part: str) -> set[str]:
    """After which a part of a node can be another."""
    head = _head(part)
    if head == EVERYTHING:
        return {NODE_UPDATE, *NODE_EVENTS.values(), *ALL_OF_PODS}
    if head in OF_PODS:
        return {*ALL_OF_PODS}
    if head in NEVER_CHANGE:
        return set()
    if head in NODE_EVENTS:
        return {NODE_EVENTS[head]}
    return {NODE_UPDATE} | {event for inner, event in NODE_EVENTS.items() if inner.startswith(f"{head}.")}


def _view_events(found: ViewReads, view: View, rule: Rule) -> set[str]:
    """A view over nodes changes with the parts that it reads of them, and when one goes; one over pods when pods come,
    go or change, and with what it reads of their nodes."""
    order = {NODE_DELETE, NODE_EVENTS["labels"]} if found.ordered else set()
    if found.relation == "nodes":
        return order | {NODE_DELETE}.union(*(_node_events(part) for part in found.rows))
    only_less = view.form == "count" and _only_less_helps(rule, found.name)
    events = order | (LESS if only_less else ALL_OF_PODS)
    for part in found.rows:
        if part in ("status", EVERYTHING) or part.startswith("status."):
            events.add(POD_STATUS)
        if part in ("node", EVERYTHING):
            events |= _node_events(EVERYTHING)
        elif part.startswith("node."):
            events |= _node_events(part.removeprefix("node."))
    return events


def _only_less_helps(rule: Rule, name: str) -> bool:
    """Every condition of the rule that can deny grows with what is called so: less of it can help, more cannot."""
    conditions = list(_conditions((*rule.before, *rule.body)))
    directions = {_direction(inline(c), name) for c, _ in conditions}
    return directions <= {0, 1} and all(not stops or _direction(inline(c), name) == 0 for c, stops in conditions)


def _conditions(statements: Iterable[Statement]) -> Iterator[tuple[Expr, bool]]:
    for statement in statements:
        match statement:
            case Deny(condition=condition) | Fail(condition=condition):
                yield condition, False
            case Stop(condition=condition):
                yield condition, True
            case For(body=body, range=range_):
                yield range_, True
                yield from _conditions(body)
            case Collect(body=body):
                yield from _conditions(body)
            case _:
                for expr in statement_expressions(statement):
                    yield expr, True


UNKNOWN = 2


def _direction(expr: Expr, name: str) -> int:
    """How the value moves when what is called so grows: 0 not at all, 1 up, -1 down, 2 unknown. True is above false."""
    match expr:
        case Constant():
            return 0
        case Ref(binding=binding):
            return 1 if binding.kind is Kind.VIEW and binding.name == name else 0
        case Read(field=field_, value=Ref(binding=binding)) if binding.kind is Kind.ROOT:
            return 1 if field_.name == name and binding.name == "node" else 0
        case At(value=value, key=key) if isinstance(value.type, Map):
            return _direction(value, name) if _direction(key, name) == 0 else UNKNOWN
        case Op(operator="!" | "neg", operands=(inner,)):
            return _flip(_direction(inner, name))
        case Op(operator="+", operands=(a, b)) | Op(operator=">" | ">=", operands=(a, b)) as op:
            other = _direction(b, name)
            return _joined([_direction(a, name), other if op.operator == "+" else _flip(other)])
        case Op(operator="-" | "<" | "<=", operands=(a, b)) as op:
            first, second = _direction(a, name), _direction(b, name)
            return _joined([first, _flip(second)] if op.operator == "-" else [_flip(first), second])
        case Logic(items=items):
            return _joined([_direction(item, name) for item in items])
        case Comprehend(kind="all" | "exists" as kind, variables=(_,), range=range_, body=body):
            moved = _direction(range_, name)  # of elements or keys: there are more, each is what it was
            return _joined([moved if kind == "exists" else _flip(moved), _direction(body, name)])
        case LetIn(binding=binding, value=value, body=body):
            return _direction(body, name) if _direction(value, name) == 0 else UNKNOWN
        case Apply(row=row, arguments=(inner,)) if row.name in ("size", "keys"):
            return _direction(inner, name)
    return 0 if all(_direction(child, name) == 0 for child in children(expr)) else UNKNOWN


def _flip(direction: int) -> int:
    return direction if direction == UNKNOWN else -direction


def _joined(directions: Iterable[int]) -> int:
    moved = {d for d in directions if d != 0}
    return 0 if not moved else moved.pop() if len(moved) == 1 else UNKNOWN
