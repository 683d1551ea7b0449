"""Label and field selectors of lists and watches, with the words of apimachinery's parsers for what is wrong."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ksp.apiserver.http.routing import INT64
from ksp.apiserver.resources import Resource
from ksp.apiserver.status import ApiStatusError, bad_request
from ksp.apiserver.versions import Version

Json = dict[str, Any]
Predicate = Callable[[Json], bool]

# --- labels ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Requirement:
    """One clause. Operators: `exists`, `!`, `=`, `==`, `!=`, `in`, `notin`, `gt`, `lt`."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def fits(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "=" | "==" | "in":
                return value is not None and value in self.values
            case "!=" | "notin":
                return value is None or value not in self.values
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        number, bound = _number(value or ""), _number(next(iter(self.values)))
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "gt" else number < bound


def _number(text: str) -> int | None:
    """A number of 64 bits; None for any other text."""
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return None
    return int(text) if int(text) in INT64 else None


_WORD: Final = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+|$)")
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "<", ">", "(", ")", ","})
_OPERATORS: Final = {"=": "=", "==": "==", "!=": "!=", "in": "in", "notin": "notin", ">": "gt", "<": "lt"}


class _Labels:
    """The parser of `labels.Parse`: words from left to right."""

    def __init__(self, text: str, operators: str) -> None:
        self._operators = operators
        self._words = [word for word in _WORD.findall(text) if word]
        self._at = 0

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            word = self._peek()
            if not word:
                return found
            if word != "!" and word in _SYMBOLS:
                raise bad_request(f"found '{word}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            word = self._next()
            if not word:
                return found
            if word != ",":
                raise bad_request(f"found '{word}', expected: ',' or 'end of string'")
            following = self._peek()
            if following != "!" and (not following or following in _SYMBOLS):
                raise bad_request(f"found '{following}', expected: identifier after ','")

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def _requirement(self) -> Requirement:
        negated = self._peek() == "!"
        if negated:
            self._next()
        key = self._next()
        if not key or key in _SYMBOLS:
            raise _requirement_error(f"found '{key}', expected: identifier")
        if negated or self._peek() in {"", ","}:
            return Requirement(key, "!" if negated else "exists")
        word = self._next()
        operator = _OPERATORS.get(word)
        if operator is None:
            raise _requirement_error(f"found '{word}', expected: {self._operators}")
        values = self._set() if operator in {"in", "notin"} else self._value()
        if operator in {"gt", "lt"} and _number(next(iter(values))) is None:
            raise _requirement_error(f"{word}: for 'Gt', 'Lt' operators, the value must be an integer")
        return Requirement(key, operator, values)

    def _set(self) -> frozenset[str]:
        word = self._next()
        if word != "(":
            raise _requirement_error(f"found '{word}' expected: '('")
        values: set[str] = set()
        while True:
            word = self._next()
            if word in {",", ")"}:
                values.add("")
            elif word and word not in _SYMBOLS:
                values.add(word)
                word = self._next()
            else:
                raise _requirement_error(f"found '{word}', expected: ',', ')' or identifier")
            if word == ")":
                return frozenset(values)
            if word != ",":
                raise _requirement_error(f"found '{word}', expected: ',' or ')'")

    def _value(self) -> frozenset[str]:
        word = self._peek()
        if word in {"", ","}:
            return frozenset({""})
        self._next()
        if word in _SYMBOLS:
            raise _requirement_error(f"found '{word}', expected: identifier")
        return frozenset({word})


def _requirement_error(text: str) -> ApiStatusError:
    return bad_request(f"unable to parse requirement: {text}")


def label_selector(text: str, version: Version) -> Predicate | None:
    """None if everything fits. Raises 400."""
    requirements = _Labels(text, version.selector_operators).parse()
    if not requirements:
        return None

    def fits(obj: Json) -> bool:
        labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
        return all(requirement.fits(labels) for requirement in requirements)

    return fits


# --- fields ----------------------------------------------------------------------------------------------------------

METADATA_FIELDS: Final = ("metadata.name", "metadata.namespace")
EVENT_FIELDS: Final = (
    *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")),
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
NEW_EVENT_FIELDS: Final = tuple(
    name.replace("involvedObject", "regarding").replace("reportingComponent", "reportingController")
    for name in EVENT_FIELDS
    if name != "source"
)
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "pods": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
        *("status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase", "name"),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "persistentvolumes": ("name",),
    "persistentvolumeclaims": ("name",),
    "events": EVENT_FIELDS,
    "events.events.k8s.io": NEW_EVENT_FIELDS,
}
"""Beside the fields of the metadata."""

SHORT_ERROR: Final = frozenset(
    {"pods", "nodes", "namespaces", "secrets", "services", "replicationcontrollers", "events", "replicasets.apps"}
    | {"events.events.k8s.io"}
)
"""Kinds with a conversion of their own, whose error is short; others list what there is."""


def name_in(text: str) -> str:
    """The one name that a field selector leaves, "" if it leaves several. Raises 400 for what is no selector."""
    terms = [_term(part, text) for part in _split(text) if part]
    return next((value for path, equal, value in terms if path == "metadata.name" and equal), "")


def field_selector(text: str, resource: Resource) -> Predicate | None:
    """None if everything fits. Raises 400."""
    terms = [_term(part, text) for part in _split(text) if part]
    if not terms:
        return None
    for path, _, _ in terms:
        _check(path, resource)

    def fits(obj: Json) -> bool:
        return all((_field(obj, path) == value) is equal for path, equal, value in terms)

    return fits


def _split(text: str) -> list[str]:
    return re.split(r"(?<!\\),", text)


def _term(part: str, whole: str) -> tuple[str, bool, str]:
    for operator, equal in (("!=", False), ("==", True), ("=", True)):
        path, found, value = part.partition(operator)
        if found:
            return path, equal, re.sub(r"\\(.)", r"\1", value)
    raise bad_request(f"invalid selector: '{whole}'; can't understand '{part}'")


def _check(path: str, resource: Resource) -> None:
    if path in METADATA_FIELDS or path in FIELDS.get(resource.id, ()):
        return
    if resource.id in SHORT_ERROR:
        raise bad_request(f"field label not supported: {path}")
    raise bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')


_SYNONYMS: Final = {"name": "metadata.name", "source": "source.component"}


def _field(obj: Json, path: str) -> str:
    """The text of a field as the selector sees it; what is not there is its zero."""
    path = _SYNONYMS.get(path, path)
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if value is None:
        return _zero(path)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _zero(path: str) -> str:
    if path in {"spec.unschedulable", "spec.hostNetwork"}:
        return "false"
    return "0" if path.startswith("status.") and path.endswith(("replicas", "successful")) else ""
