"""Validation of what a scheduler reads in a pod: selectors, affinity, tolerations, spread constraints, gates."""

from collections.abc import Iterable, Sequence
from typing import Final

from ksp.apiserver.status import Cause, duplicate, forbidden_field, invalid_value, not_supported, required
from ksp.apiserver.strategy import Json
from ksp.apiserver.validation import names
from ksp.apiserver.validation.metadata import named, one_of, quoted, shown, validate_labels, validate_selector
from ksp.apiserver.versions import Version

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def validate_scheduling(spec: Json, field: str, version: Version) -> list[Cause]:
    """In the order of the server: node selector, affinity, tolerations, spread constraints, gates."""
    affinity = spec.get("affinity") or {}
    return [
        *validate_labels(spec.get("nodeSelector") or {}, f"{field}.nodeSelector", version),
        *_validate_affinity(affinity, f"{field}.affinity", version),
        *validate_tolerations(spec.get("tolerations") or (), f"{field}.tolerations", version),
        *_validate_spread(spec.get("topologySpreadConstraints") or (), f"{field}.topologySpreadConstraints", version),
        *_validate_gates(spec.get("schedulingGates") or (), f"{field}.schedulingGates", version),
    ]


def _validate_gates(gates: Iterable[Json], field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        found += named(name, f"{field}[{index}]", names.qualified_name, version)
        if name in seen:
            found.append(duplicate(f"{field}[{index}]", quoted(name)))
        seen.add(name)
    return found


def validate_tolerations(tolerations: Iterable[Json], field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    for index, toleration in enumerate(tolerations):
        found += _validate_toleration(toleration, f"{field}[{index}]", version)
    return found


def _validate_toleration(toleration: Json, field: str, version: Version) -> list[Cause]:
    key, operator, value, effect = (toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
    found = named(key, f"{field}.key", names.qualified_name, version) if key else []
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(invalid_value(f"{field}.operator", quoted(operator), text))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid_value(f"{field}.effect", quoted(effect), text))
    match operator:
        case "Equal" | "":
            found += named(value, f"{field}.operator", names.label_value, version)
        case "Exists":
            if value:
                text = "value must be empty when `operator` is 'Exists'"
                found.append(invalid_value(f"{field}.operator", shown(toleration), text))
        case _:
            found += one_of(operator, f"{field}.operator", ("Equal", "Exists"), version)
    return [*found, *(one_of(effect, f"{field}.effect", EFFECTS, version) if effect else [])]


def _validate_spread(constraints: Sequence[Json], field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        place = f"{field}[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            skew = str(constraint.get("maxSkew", 0))
            found.append(invalid_value(f"{place}.maxSkew", skew, "must be greater than zero"))
        if not constraint.get("topologyKey"):
            found.append(required(f"{place}.topologyKey", "can not be empty"))
        action = constraint.get("whenUnsatisfiable", "")
        found += one_of(action, f"{place}.whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"), version)
        pair = (constraint.get("topologyKey", ""), action)
        if pair in seen:
            found.append(duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", quoted(f"{{{pair[0]}, {pair[1]}}}")))
        seen.add(pair)
        found += validate_selector(constraint.get("labelSelector"), f"{place}.labelSelector", version)
    return found


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _validate_affinity(affinity: Json, field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    if node := affinity.get("nodeAffinity"):
        place = f"{field}.nodeAffinity"
        if _REQUIRED in node:
            found += validate_node_selector(node[_REQUIRED], f"{place}.{_REQUIRED}", version)
        for index, term in enumerate(node.get(_PREFERRED) or ()):
            inner = f"{place}.{_PREFERRED}[{index}]"
            found += _validate_weight(term, inner)
            found += _validate_node_term(term.get("preference") or {}, f"{inner}.preference", version)
    for name in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate((affinity.get(name) or {}).get(_REQUIRED) or ()):
            found += _validate_pod_term(term, f"{field}.{name}.{_REQUIRED}[{index}]", version)
        for index, term in enumerate((affinity.get(name) or {}).get(_PREFERRED) or ()):
            inner = f"{field}.{name}.{_PREFERRED}[{index}]"
            found += _validate_weight(term, inner)
            found += _validate_pod_term(term.get("podAffinityTerm") or {}, f"{inner}.podAffinityTerm", version)
    return found


def _validate_weight(term: Json, field: str) -> list[Cause]:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid_value(f"{field}.weight", str(weight), "must be in the range 1-100")]


def _validate_pod_term(term: Json, field: str, version: Version) -> list[Cause]:
    found = validate_selector(term.get("labelSelector"), f"{field}.labelSelector", version)
    for namespace in term.get("namespaces") or ():
        found += named(namespace, f"{field}.namespace", names.label, version)
    key = term.get("topologyKey", "")
    if not key:
        return [*found, required(f"{field}.topologyKey", "can not be empty")]
    return [*found, *named(key, f"{field}.topologyKey", names.qualified_name, version)]


def validate_node_selector(selector: Json, field: str, version: Version) -> list[Cause]:
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")]
    found: list[Cause] = []
    for index, term in enumerate(terms):
        found += _validate_node_term(term, f"{field}.nodeSelectorTerms[{index}]", version)
    return found


def _validate_node_term(term: Json, field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    for index, each in enumerate(term.get("matchExpressions") or ()):
        place = f"{field}.matchExpressions[{index}]"
        found += _validate_node_requirement(each, place)
        found += named(each.get("key", ""), f"{place}.key", names.qualified_name, version)
    for index, each in enumerate(term.get("matchFields") or ()):
        place = f"{field}.matchFields[{index}]"
        if each.get("operator") not in {"In", "NotIn"}:
            found.append(
                not_supported(f"{place}.operator", quoted(each.get("operator", "")), 'supported values: "In", "NotIn"')
            )
        if len(each.get("values") or ()) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            found.append(required(f"{place}.values", text))
    return found


def _validate_node_requirement(requirement: Json, field: str) -> list[Cause]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    match operator:
        case "In" | "NotIn" if not values:
            return [required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
        case "Exists" | "DoesNotExist" if values:
            return [
                forbidden_field(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            ]
        case "Gt" | "Lt" if len(values) != 1:
            return [required(f"{field}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")]
        case _ if operator not in _NODE_OPERATORS:
            return [invalid_value(f"{field}.operator", quoted(operator), "not a valid selector operator")]
    return []
