"""Nodes and namespaces."""

from typing import Final

from ksp.apiserver.status import Cause, duplicate, forbidden_field, invalid_value, required
from ksp.apiserver.strategies.base import Kind
from ksp.apiserver.strategies.defaults import fill
from ksp.apiserver.strategy import Context, DeleteOptions, Json, keep
from ksp.apiserver.validation import names
from ksp.apiserver.validation.metadata import named, one_of, quoted
from ksp.apiserver.validation.resources import validate_amounts
from ksp.apiserver.validation.scheduling import EFFECTS

NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

_FIXED: Final = ("podCIDR", "podCIDRs", "providerID")
"""Fields of the spec that may be set, but not changed."""


class Nodes(Kind):
    """core/v1."""

    core = True

    def default_more(self, obj: Json, context: Context) -> None:
        spec, status = obj["spec"], obj["status"]
        if spec.get("podCIDR"):
            fill(spec, {"podCIDRs": [spec["podCIDR"]]})
        elif spec.get("podCIDRs"):
            spec["podCIDR"] = spec["podCIDRs"][0]
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])

    def admit_create(self, obj: Json, context: Context) -> None:
        """TaintNodesByCondition: a new node is not ready until its lifecycle controller has looked at it."""
        taints: list[Json] = obj["spec"].get("taints") or []
        pairs = [(taint.get("key"), taint.get("effect")) for taint in taints]
        if not context.loading and (NOT_READY["key"], NOT_READY["effect"]) not in pairs:
            obj["spec"]["taints"] = [*taints, dict(NOT_READY)]

    def check(self, obj: Json, context: Context) -> list[Cause]:
        found = _validate_taints(obj["spec"].get("taints") or (), context)
        for name in ("capacity", "allocatable"):
            found += validate_amounts(obj["status"].get(name) or {}, f"status.{name}")
        return found

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        fixed = [name for name in _FIXED if old["spec"].get(name) and new["spec"].get(name) != old["spec"][name]]
        text = 'node updates may not change podCIDR except from "" to valid'
        if "providerID" in fixed:
            text = 'node updates may not change providerID except from "" to valid'
        return [forbidden_field("spec.providerID" if "providerID" in fixed else "spec.podCIDRs", text)] if fixed else []


def _validate_taints(taints: list[Json] | tuple[()], context: Context) -> list[Cause]:
    found: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        field = f"metadata.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        found += named(key, f"{field}.key", names.qualified_name, context.version)
        if taint.get("value"):
            found += named(taint["value"], f"{field}.value", names.label_value, context.version)
        found += (
            one_of(effect, f"{field}.effect", EFFECTS, context.version) if effect else [required(f"{field}.effect")]
        )
        if (key, effect) in seen:
            found.append(duplicate(field, quoted(f"{{{key} {taint.get('value', '')} {effect} <nil>}}")))
        seen.add((key, effect))
    return found


class Namespaces(Kind):
    """core/v1: gone when the finalizers of the spec are, which only `/finalize` changes."""

    core = True
    name_check = staticmethod(names.label)

    def default_more(self, obj: Json, context: Context) -> None:
        if context.version.namespace_name_label and obj["metadata"].get("name"):
            labels = {**(obj["metadata"].get("labels") or {}), "kubernetes.io/metadata.name": obj["metadata"]["name"]}
            obj["metadata"]["labels"] = dict(sorted(labels.items()))

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        obj["status"] = {"phase": "Active"}
        finalizers = obj["spec"].get("finalizers") or []
        obj["spec"]["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
        self.default_more(obj, context)

    def check(self, obj: Json, context: Context) -> list[Cause]:
        found: list[Cause] = []
        for index, text in enumerate(obj["spec"].get("finalizers") or ()):
            if "/" not in text and text != "kubernetes":
                why = "name is neither a standard finalizer name nor is it fully qualified"
                found.append(invalid_value(f"spec.finalizers[{index}]", quoted(text), why))
        return found

    def prepare_for_update(self, new: Json, old: Json, context: Context) -> None:
        new["spec"]["finalizers"] = old["spec"].get("finalizers", [])
        if not new["spec"]["finalizers"]:
            del new["spec"]["finalizers"]
        keep(new, old, "status")

    def prepare_for_status_update(self, new: Json, old: Json, context: Context) -> None:
        if context.subresource == "finalize":
            keep(new, old, "status")
        else:
            keep(new, old, "spec")

    def prepare_for_delete(self, new: Json, options: DeleteOptions, context: Context) -> bool:
        if not new["spec"].get("finalizers"):
            return False
        new["status"] = {**new["status"], "phase": "Terminating"}
        return True

    def may_go(self, obj: Json) -> bool:
        return not obj["spec"].get("finalizers")
