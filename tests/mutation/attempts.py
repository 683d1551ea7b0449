"""Changes of a recorded case, one at a time: of the pod that is to be placed, or of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.golden.recorded import Case
from tests.mutation.leaves import Changer, Values
from tests.mutation.reads import Changed, Way, of_pods
from tests.mutation.world import KINDS, Replaced, guessed, identity, world_of

from ksp.model.decode import DecodeError, convert
from ksp.model.info import PodInfo
from ksp.model.pod import Pod

Leaf = tuple[object, ...]

POD: Final = "pod"
"""The pod that is to be placed, where kinds of objects are named."""

ANYWHERE: Final[Sequence[Way]] = [(POD, ()), *((kind, ()) for kind in KINDS)]
OFTEN: Final[Mapping[str, float]] = {POD: 5.0, "nodes": 3.0, "pods": 3.0}  # how often changed, where others count 1
ABSENT: Final = 0.1  # how often one of a kind comes that the case has none of
COMES_OR_GOES: Final = 0.12  # of the changes of the cluster
SAME_AGAIN: Final = 0.6  # of objects that come: like one that is here


@dataclass(frozen=True, slots=True)
class Attempt:
    """A change that can be made, of the pod or else of the cluster, and which leaf that is. `seen` is what it changes
    by itself, without what follows for others."""

    leaf: Leaf
    said: str
    pod: PodInfo
    replaced: Replaced | None
    seen: Changed


class Attempts:
    """Makes attempts for a case. `far` is what stands in all cases. `made` are the objects of the cluster by kind."""

    def __init__(self, case: Case, dice: Random, far: Values) -> None:
        self.case, self.dice, self.far = case, dice, far
        cluster = case["cluster"] or {}
        self.raw = {kind: list(cluster.get(kind) or ()) for kind in KINDS}
        self.raw["pods"] = [raw for raw in self.raw["pods"] if (raw.get("spec") or {}).get("nodeName")]
        self.made = {kind: list(values) for kind, values in world_of(self.raw).made.items()}
        self.pod = PodInfo.of(convert(Pod, case["pod"]))
        near = Values()
        learn(near, case)
        self._changer = Changer(dice, near, far)

    def some(self, ways: Sequence[Way] = ANYWHERE) -> Attempt | None:
        """A change on one of these ways that the language can see; None if the dice found none."""
        weights = [self._weight(kind) for kind, _ in ways]
        if not any(weights):
            return None
        kind, towards = self.dice.choices(ways, weights)[0]
        return self._of_the_pod(towards) if kind == POD else self._of_the_cluster(kind, towards)

    def _weight(self, kind: str) -> float:
        if kind == POD or self.raw[kind]:
            return OFTEN.get(kind, 1.0)
        return ABSENT if self.far.at((kind,)) else 0.0

    def _of_the_pod(self, towards: Sequence[str]) -> Attempt | None:
        change = self._changer.change("pods", self.case["pod"], towards)
        new = _decoded("pods", change.made_in(self.case["pod"])) if change is not None else None
        if change is None or new is None:
            return None
        pod = PodInfo.of(new)
        seen = Changed(pod=of_pods(self.pod, pod))
        return Attempt((POD, change.path), f"pod{change}", pod, None, seen) if seen.pod else None

    def _of_the_cluster(self, kind: str, towards: Sequence[str]) -> Attempt | None:
        found = self._comes_or_goes(kind) if self.dice.random() < COMES_OR_GOES else self._another(kind, towards)
        if found is None:
            return None
        leaf, said, replaced = found
        return Attempt(leaf, said, self.pod, replaced, guessed(replaced))

    def _another(self, kind: str, towards: Sequence[str]) -> tuple[Leaf, str, Replaced] | None:
        """An object with one leaf changed."""
        if not self.raw[kind]:
            return None
        at = self.dice.randrange(len(self.raw[kind]))
        change, old = self._changer.change(kind, self.raw[kind][at], towards), self.made[kind][at]
        new = _decoded(kind, change.made_in(self.raw[kind][at])) if change is not None else None
        if change is None or new is None or new == old or self._is_taken(kind, new, at):
            return None
        if kind == "pods" and not new.spec.node_name:
            return None  # the API takes no pod from its node
        return (kind, at, change.path), f"{kind}[{at}]{change}", Replaced(kind, old, new)

    def _comes_or_goes(self, kind: str) -> tuple[Leaf, str, Replaced] | None:
        if self.raw[kind] and self.dice.random() < 0.5:
            at = self.dice.randrange(len(self.raw[kind]))
            return (kind, at), f"{kind}[{at}] goes", Replaced(kind, self.made[kind][at], None)
        new = _decoded(kind, self._newcomer(kind))
        if new is None or self._is_taken(kind, new, -1):
            return None
        return (kind,), f"{kind}: {new.metadata.name} comes", Replaced(kind, None, new)

    def _newcomer(self, kind: str) -> Mapping[str, Any]:
        """Like one of its kind, here or elsewhere; a pod may be like the one that is to be placed."""
        like = [*self.raw[kind], *([self.case["pod"]] if kind == "pods" else ())]
        model = self.dice.choice(like if like and self.dice.random() < SAME_AGAIN else self.far.at((kind,)))
        meta = dict(model.get("metadata") or {}) | {"name": f"new-{self.dice.randrange(1000)}", "uid": "new"}
        if meta.get("namespace"):
            meta["namespace"] = self.pod.namespace
        made = {**model, "metadata": meta}
        if kind == "pods" and self.raw["nodes"]:
            place = self.dice.choice(self.raw["nodes"])["metadata"]["name"]
            made["spec"] = {**(made.get("spec") or {}), "nodeName": place}
        return made

    def _is_taken(self, kind: str, new: Any, at: int) -> bool:
        """Another object has its name, or uid."""
        others = [made for i, made in enumerate(self.made[kind]) if i != at]
        return any(identity(new)[:2] == identity(made)[:2] or _uid(new) == _uid(made) for made in others)


def _decoded(kind: str, raw: Mapping[str, Any]) -> Any | None:
    """The object; None if a change made it none."""
    try:
        return convert(KINDS[kind], raw)
    except DecodeError:
        return None


def _uid(made: Any) -> str | tuple[str, str]:
    return made.metadata.uid or (made.metadata.namespace, made.metadata.name)


# What a pod may have that recorded ones have not.
NEWER: Final[Mapping[str, Any]] = {
    "metadata": {"name": "newer"},
    "spec": {
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 80}]}],
        "overhead": {"cpu": "250m", "memory": "64Mi"},
        "resources": {"requests": {"cpu": "3", "memory": "1Gi"}},
        "topologySpreadConstraints": [{"minDomains": 3, "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["app"]}],
    },
    "status": {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "containerStatuses": [
            {"name": "a", "resources": {"requests": {"cpu": "4"}}, "allocatedResources": {"cpu": "5"}}
        ],
    },
}


def everything(recorded: Iterable[Case]) -> Values:
    """What stands in all of these cases, and what newer pods have."""
    values = Values()
    values.learn("pods", [NEWER])
    for case in recorded:
        learn(values, case)
    return values


def learn(values: Values, case: Case) -> None:
    """Take in what stands in the objects of a case."""
    for kind in KINDS:
        values.learn(kind, (case["cluster"] or {}).get(kind) or ())
    values.learn("pods", [case["pod"]])
