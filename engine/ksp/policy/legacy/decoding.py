"""Plain values to a LegacyPolicy. All that is wrong is noted; the rest is read as if it were not there."""

from __future__ import annotations

from typing import Any, Final

from ksp.policy.legacy.extenders import ExtenderReader
from ksp.policy.legacy.mistakes import Mistake, Steps
from ksp.policy.legacy.model import (
    CapacityRatio,
    LabelPreference,
    LabelsPresence,
    LegacyPolicy,
    Predicate,
    PredicateArgument,
    Priority,
    PriorityArgument,
    ServiceAffinity,
    ServiceAntiAffinity,
)
from ksp.policy.legacy.shapes import Shapes

KIND: Final = "Policy"
CONFIGURATION: Final = "KubeSchedulerConfiguration"
VERSIONS: Final = ("v1", "kubescheduler.config.k8s.io/v1")
FIELDS: Final = (
    "kind", "apiVersion", "predicates", "priorities", "extenders", "hardPodAffinitySymmetricWeight",
    "alwaysCheckAllPredicates",
)  # fmt: skip


def decoded(value: Any, name: str) -> tuple[LegacyPolicy, tuple[Mistake, ...]]:
    """The Policy in a value, as far as it can be read, and what is wrong with the rest."""
    reader = _Reader()
    policy = reader.policy(value, name)
    return policy, tuple(reader.shapes.mistakes)


class _Reader:
    """Reads the parts of a Policy, outermost first."""

    def __init__(self) -> None:
        self.shapes = Shapes()

    def policy(self, value: Any, name: str) -> LegacyPolicy:
        if not isinstance(value, dict):
            self.shapes.note("must be an object, of kind Policy", ())
            return LegacyPolicy(name)
        if not self._is_policy(value):
            return LegacyPolicy(name)
        fields = self.shapes.fields(value, (), FIELDS)
        extenders = ExtenderReader(self.shapes)
        items = self.shapes.items
        return LegacyPolicy(
            name,
            items(fields["predicates"], ("predicates",), self.predicate) if "predicates" in fields else None,
            items(fields["priorities"], ("priorities",), self.priority) if "priorities" in fields else None,
            items(fields.get("extenders"), ("extenders",), extenders.read),
            self.shapes.small(fields.get("hardPodAffinitySymmetricWeight"), ("hardPodAffinitySymmetricWeight",)),
            self.shapes.boolean(fields.get("alwaysCheckAllPredicates"), ("alwaysCheckAllPredicates",)),
            tuple(extenders.ignored),
        )

    def _is_policy(self, value: dict[str, Any]) -> bool:
        """Notes a kind that is missing or another one; of another one's fields nothing is said."""
        kind, version = value.get("kind"), value.get("apiVersion")
        if not kind:
            self.shapes.note("Object 'Kind' is missing", ("kind",), "it is `Policy`")
        if not version:
            self.shapes.note("Object 'apiVersion' is missing", ("apiVersion",), "it is `v1`")
        if not kind or not version or (kind == KIND and version in VERSIONS):
            return True
        at: Steps = ("kind",) if kind != KIND else ("apiVersion",)
        hint = "give it with --config" if kind == CONFIGURATION else "a Policy is of kind `Policy`, apiVersion `v1`"
        self.shapes.note(f'no kind "{kind}" is registered for version "{version}"', at, hint)
        return False

    def predicate(self, value: Any, steps: Steps) -> Predicate:
        fields = self.shapes.fields(value, steps, ("name", "argument"))
        name = self.shapes.text(fields.get("name"), (*steps, "name"))
        if "argument" not in fields:
            return Predicate(name)
        at = (*steps, "argument")
        known = {"serviceAffinity": self._service_affinity, "labelsPresence": self._labels_presence}
        given = self.shapes.fields(fields["argument"], at, known)
        made: list[PredicateArgument] = [known[key](inner, (*at, key)) for key, inner in given.items()]
        return Predicate(name, tuple(made))

    def _service_affinity(self, value: Any, steps: Steps) -> PredicateArgument:
        fields = self.shapes.fields(value, steps, ("labels",))
        return ServiceAffinity(self._labels(fields, steps))

    def _labels_presence(self, value: Any, steps: Steps) -> PredicateArgument:
        fields = self.shapes.fields(value, steps, ("labels", "presence"))
        return LabelsPresence(self._labels(fields, steps), self._presence(fields, steps))

    def _labels(self, fields: dict[str, Any], steps: Steps) -> tuple[str, ...]:
        return self.shapes.items(fields.get("labels"), (*steps, "labels"), self.shapes.text)

    def _presence(self, fields: dict[str, Any], steps: Steps) -> bool:
        return self.shapes.boolean(fields.get("presence"), (*steps, "presence"))

    def priority(self, value: Any, steps: Steps) -> Priority:
        fields = self.shapes.fields(value, steps, ("name", "weight", "argument"))
        name = self.shapes.text(fields.get("name"), (*steps, "name"))
        weight = self.shapes.integer(fields.get("weight"), (*steps, "weight"))
        if "argument" not in fields:
            return Priority(name, weight)
        at = (*steps, "argument")
        known = {
            "labelPreference": self._label_preference,
            "serviceAntiAffinity": self._service_anti_affinity,
            "requestedToCapacityRatioArguments": self._capacity_ratio,
        }
        given = self.shapes.fields(fields["argument"], at, known)
        made: list[PriorityArgument] = [known[key](inner, (*at, key)) for key, inner in given.items()]
        return Priority(name, weight, tuple(made))

    def _label_preference(self, value: Any, steps: Steps) -> PriorityArgument:
        fields = self.shapes.fields(value, steps, ("label", "presence"))
        return LabelPreference(self._label(fields, steps), self._presence(fields, steps))

    def _service_anti_affinity(self, value: Any, steps: Steps) -> PriorityArgument:
        return ServiceAntiAffinity(self._label(self.shapes.fields(value, steps, ("label",)), steps))

    def _label(self, fields: dict[str, Any], steps: Steps) -> str:
        return self.shapes.text(fields.get("label"), (*steps, "label"))

    def _capacity_ratio(self, value: Any, steps: Steps) -> PriorityArgument:
        fields = self.shapes.fields(value, steps, ("shape", "resources"))
        return CapacityRatio(
            self.shapes.items(fields.get("shape"), (*steps, "shape"), self._point),
            self.shapes.items(fields.get("resources"), (*steps, "resources"), self._resource),
        )

    def _point(self, value: Any, steps: Steps) -> tuple[int, int]:
        fields = self.shapes.fields(value, steps, ("utilization", "score"))
        utilization = self.shapes.small(fields.get("utilization"), (*steps, "utilization"))
        return utilization, self.shapes.small(fields.get("score"), (*steps, "score"))

    def _resource(self, value: Any, steps: Steps) -> tuple[str, int]:
        fields = self.shapes.fields(value, steps, ("name", "weight"))
        name = self.shapes.text(fields.get("name"), (*steps, "name"))
        return name, self.shapes.integer(fields.get("weight"), (*steps, "weight"))
