"""`test` blocks: objects become the JSON that an API server would hold, expectations name rules and objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ksp.check import mistakes, resources, schema
from ksp.check.elsewhere import paths_below
from ksp.check.reasons import denials, fixed_parts
from ksp.check.report import Report
from ksp.check.typed import (
    Expect,
    Provider,
    Rule,
    Test,
    TestObject,
)
from ksp.check.types import INT, RESOURCES, STRING, List, Map, Struct, Type
from ksp.model.decode import CLUSTER_SCOPED, DecodeError, convert
from ksp.model.decode import KINDS as API
from ksp.model.quantity import QuantityError
from ksp.model.quantity import value as quantity_value
from ksp.source.text import Span
from ksp.syntax import tree
from ksp.syntax.recovery import ANY

# What a test calls a kind, and what the API calls it.
KINDS: dict[str, str] = {
    "node": "Node",
    "pod": "Pod",
    "service": "Service",
    "replicationController": "ReplicationController",
    "replicaSet": "ReplicaSet",
    "statefulSet": "StatefulSet",
    "persistentVolume": "PersistentVolume",
    "persistentVolumeClaim": "PersistentVolumeClaim",
    "storageClass": "StorageClass",
    "csiNode": "CSINode",
    "podDisruptionBudget": "PodDisruptionBudget",
    "priorityClass": "PriorityClass",
    "namespace": "Namespace",
}
TOP = ("metadata", "spec", "status")
SHORT_FORMS: dict[str, dict[str, Type]] = {
    "Pod": {"requests": RESOURCES},
    "Node": {"allocatable": RESOURCES, "images": Map(STRING, INT)},
}
IN_METADATA = ("labels", "annotations", "namespace", "uid", "ownerReferences", "deletionTimestamp")


class Tests:
    """Checks the tests of one file."""

    def __init__(
        self, report: Report, rules: Mapping[str, Rule], providers: Mapping[str, Provider], broken: frozenset[str]
    ) -> None:
        self.report = report
        self.rules = rules
        self.providers = providers
        self.broken = broken

    def test(self, node: tree.Test) -> Test:
        objects: dict[str, TestObject] = {}
        for given in node.objects:
            made = self._object(given)
            if made is None:
                continue
            if made.name in objects:
                mistakes.declared_twice(self.report, given.name_span, made.name, objects[made.name].span)
            objects[made.name] = made
        self._placed(node.objects, objects)
        expects = [expect for n in node.expects if (expect := self._expect(n, objects)) is not None]
        if not node.expects:
            mistakes.bad_expectation(self.report, node.name_span, "a test that expects nothing", "no `expect` in it")
        return Test(node.name, node.name_span, tuple(objects.values()), tuple(expects))

    def _placed(self, nodes: Sequence[tree.TestObject], objects: Mapping[str, TestObject]) -> None:
        hosts = [o.name for o in objects.values() if o.kind == "Node"]
        for node in nodes:
            if node.on and node.kind != "pod":
                mistakes.bad_object(self.report, node.on_span or node.span, "only a pod runs on a node")
            elif node.on and node.on not in hosts:
                label = self.report.did_you_mean(node.on, hosts) or "not declared"
                mistakes.unknown_object(self.report, node.on_span or node.span, f"there is no node `{node.on}`", label)

    def _object(self, node: tree.TestObject) -> TestObject | None:
        kind = KINDS.get(node.kind)
        if kind is None:
            label = self.report.did_you_mean(node.kind, KINDS) or f"it is one of {', '.join(KINDS)}"
            mistakes.unknown_object(self.report, node.kind_span, f"there is no object `{node.kind}`", label)
            return None
        path = "".join(p for p in node.path.parts if isinstance(p, str)) if node.path is not None else ""
        if path and (path.startswith("/") or ".." in path.split("/")):
            mistakes.bad_object(
                self.report, node.path.span if node.path else node.span, "a fixture lies beside or below the test"
            )
        mark = len(self.report.found)
        value = self._json_object(node.literal) if node.literal is not None else {}
        if node.literal is not None:
            self._known_fields(kind, node.literal)
        made = _as_api(kind, node.name, value)
        if not self.report.errors_since(mark):
            self._decodes(kind, made, node)
        return TestObject(kind, node.name, node.on, made, path, node.name_span)

    # ---- what is in an object

    def _known_fields(self, kind: str, node: tree.MapLiteral) -> None:
        """A field that no rule can read is most likely misspelt."""
        shown = schema.SHOWN.get(kind)
        own = {n: f.type for n, f in schema.fields_of(kind).items() if len(f.path) == 1 and (shown is None or n in TOP)}
        meta = {n: f.type for n, f in schema.fields_of("ObjectMeta").items() if n in IN_METADATA}
        self._fields(kind, {**own, **meta, **SHORT_FORMS.get(kind, {})}, node)

    def _fields(self, owner: str, fields: Mapping[str, Type], node: tree.MapLiteral) -> None:
        for entry in node.entries:
            name = _key(entry.key)
            if name is None:
                continue
            if name not in fields:
                path = paths_below(owner).get(name, "").split(".")
                meant = f"{': {'.join(path)}: …{'}' * (len(path) - 1)}" if len(path) > 1 else ""
                help = 'a test writes only what rules can read; a whole object can stand in a file: `from "FILE"`'
                mistakes.unknown_field(self.report, entry.key.span, owner, name, fields, meant=meant, help=help)
            else:
                self._value(fields[name], entry.value)

    def _value(self, type: Type, node: tree.Expr) -> None:
        match type, node:
            case Struct(name=name), tree.MapLiteral():
                fields = schema.fields_of(name)
                self._fields(name, {n: f.type for n, f in fields.items() if len(f.path) == 1}, node)
            case List(item=item), tree.ListLiteral(items=items):
                for each in items:
                    self._value(item, each)
            case Map(value=value, resources=is_resource_list), tree.MapLiteral(entries=entries):
                for entry in entries:
                    if is_resource_list:
                        self._amount(entry)
                    self._value(value, entry.value)

    def _amount(self, entry: tree.MapEntry) -> None:
        resources.check_name(self.report, entry.key.span, _key(entry.key))
        if isinstance(entry.value, tree.Unary):
            mistakes.bad_object(self.report, entry.value.span, "an amount of a resource is not negative")

    def _decodes(self, kind: str, value: dict[str, object], node: tree.TestObject) -> None:
        try:
            convert(API[kind], value)
        except DecodeError as error:
            place = error.path.removeprefix("$.") or "the object"
            mistakes.bad_object(self.report, node.name_span, f"`{node.name}` is no {kind}: {place}: {error.message}")

    # ---- values

    def _json(self, node: tree.Expr) -> Any:
        match node:
            case tree.IntLiteral(value=value) | tree.DoubleLiteral(value=value) | tree.BoolLiteral(value=value):
                return value
            case tree.QuantityLiteral():
                return _quantity_text(node)
            case tree.Unary(operator="-", value=tree.IntLiteral(value=value) | tree.DoubleLiteral(value=value)):
                return -value
            case tree.Unary(operator="-", value=tree.QuantityLiteral() as quantity):
                return f"-{_quantity_text(quantity)}"
            case tree.StringLiteral(parts=parts) if all(isinstance(p, str) for p in parts):
                return "".join(p for p in parts if isinstance(p, str))
            case tree.ListLiteral(items=items):
                return [self._json(item) for item in items]
            case tree.MapLiteral():
                return self._json_object(node)
        mistakes.bad_object(self.report, node.span, "an object of a test is written with literals only")
        return None

    def _json_object(self, node: tree.MapLiteral) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for entry in node.entries:
            key = _key(entry.key)
            if key is None:
                mistakes.bad_object(self.report, entry.key.span, "a field's name is a name or a string")
            elif key in value:
                mistakes.entry_twice(self.report, entry.key.span, key)
            else:
                value[key] = self._json(entry.value)
        return value

    # ---- expectations

    def _expect(self, node: tree.Expect, objects: Mapping[str, TestObject]) -> Expect | None:
        rule, provider = self._subject(node)
        known = [self._has_object(node.pod, node.pod_span, "Pod", objects)]
        known.append(self._has_object(node.node, node.node_span, "Node", objects))
        if not all(known) or (rule is None and provider is None):
            return None
        score = self._score(node)
        reason = "".join(p for p in node.reason.parts if isinstance(p, str)) if node.reason is not None else ""
        if node.reason is not None:
            self._reason(node.subject, node.reason.span, reason, rule, provider)
        return Expect(node.span, node.verdict, rule, provider, node.pod, node.node, reason, score)

    def _has_object(self, name: str, span: Span, kind: str, objects: Mapping[str, TestObject]) -> bool:
        made = objects.get(name)
        if made is None or made.kind != kind:
            known = [o.name for o in objects.values() if o.kind == kind]
            label = (
                f"it is a {made.kind}" if made else self.report.did_you_mean(name, known) or "not declared in this test"
            )
            mistakes.unknown_object(self.report, span, f"there is no {kind.lower()} `{name}` in this test", label)
            return False
        return True

    def _subject(self, node: tree.Expect) -> tuple[Rule | None, Provider | None]:
        wanted = {"admits": "predicate", "denies": "predicate", "scores": "priority", "places": "provider"}[
            node.verdict
        ]
        rule, provider = self.rules.get(node.subject), self.providers.get(node.subject)
        kind = rule.kind if rule is not None else "provider" if provider is not None else ""
        if kind == wanted or (kind == "provider" and node.verdict in ("admits", "denies")):
            return rule, provider
        if kind:
            mistakes.wrong_subject(self.report, node.subject_span, node.verdict, wanted, node.subject, kind)
        elif node.subject not in self.broken and ANY not in self.broken:
            known = (
                list(self.providers) if wanted == "provider" else [n for n, r in self.rules.items() if r.kind == wanted]
            )
            mistakes.unknown_rule(self.report, node.subject_span, wanted, node.subject, known)
        return None, None

    def _reason(self, name: str, span: Span, reason: str, rule: Rule | None, provider: Provider | None) -> None:
        """Some `deny` of the rule, or of one of the provider, can say that."""
        rules = (
            [rule] if rule is not None else [use.rule for use in provider.predicates] if provider is not None else []
        )
        patterns = [fixed_parts(each) for made in rules for denial in denials(made) for each in denial.reasons]
        if not any(_said(pattern, reason) for pattern in patterns):
            mistakes.never_said(self.report, span, name, ["…".join(pattern) for pattern in patterns])

    def _score(self, node: tree.Expect) -> int:
        if node.score is None:
            return 0
        value = self._json(node.score)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 100:
            mistakes.bad_expectation(self.report, node.score.span, "a score is a number from 0 to 100", "not that")
            return 0
        return value


def _said(pattern: list[str], text: str) -> bool:
    """The text has the fixed parts in their order, from its start to its end."""
    first, *middle = pattern
    if not middle:
        return text == first
    last = middle.pop()
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    place, end = len(first), len(text) - len(last)
    for part in middle:
        place = text.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


def _key(node: tree.Expr) -> str | None:
    match node:
        case tree.Name(name=name):
            return name
        case tree.StringLiteral(parts=(str() as text,)):
            return text
        case tree.StringLiteral(parts=()):
            return ""
    return None


def _quantity_text(node: tree.QuantityLiteral) -> str:
    return node.number if node.suffix == "cpu" else node.number + node.suffix


def _as_api(kind: str, name: str, value: dict[str, Any]) -> dict[str, object]:
    """The object as the API has it, from the short forms that a test may use; as it is, where a part is no object."""
    if not all(isinstance(value.get(part, {}), dict) for part in TOP):
        return value
    value = dict(value)
    metadata = dict(value.pop("metadata", {}))
    metadata.setdefault("name", name)
    for key in IN_METADATA:
        if key in value:
            metadata[key] = value.pop(key)
    if kind == "Pod":
        _pod_short_forms(value)
        metadata.setdefault("namespace", "default")
    elif kind == "Node":
        _node_short_forms(value)
    elif kind not in CLUSTER_SCOPED:
        metadata.setdefault("namespace", "default")
    return {"apiVersion": "v1", "kind": kind, **value, "metadata": metadata}


def _bytes(size: Any) -> Any:
    """A size that may be written as a quantity; anything else is left to who decodes it."""
    try:
        return quantity_value(size) if isinstance(size, str) else size
    except QuantityError:
        return size


def _pod_short_forms(value: dict[str, Any]) -> None:
    spec = dict(value.get("spec", {}))
    if "requests" in value and isinstance(spec.get("containers", []), list):
        container = {"name": "main", "resources": {"requests": value.pop("requests")}}
        spec["containers"] = [container, *spec.get("containers", [])]
    value["spec"] = spec


def _node_short_forms(value: dict[str, Any]) -> None:
    status = dict(value.get("status", {}))
    if "allocatable" in value:
        status["allocatable"] = value.pop("allocatable")
    if "images" in value and isinstance(value["images"], dict):
        images = value.pop("images")
        status["images"] = [{"names": [image], "sizeBytes": _bytes(size)} for image, size in images.items()]
    value["status"] = status
