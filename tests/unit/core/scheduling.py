"""What tests of the decisions share: objects in few words, rules from text, dice that fall as told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ksp.core.cycle import Cycle
from ksp.core.equivalence.present import Present
from ksp.core.node_order import ZONE
from ksp.core.nominations import Nominations
from ksp.core.scheduler import Scheduler, Step
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.extender import Extender
from ksp.policy.load import DEFAULT, load, profiles
from ksp.policy.profile import Profile
from ksp.source.origin import Texts

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class FakeDice:
    """Dice that show the given numbers, and remember how many sides they had."""

    def __init__(self, *falls: int) -> None:
        self.falls = list(falls)
        self.sides: list[int] = []

    def below(self, n: int) -> int:
        self.sides.append(n)
        return self.falls.pop(0) if self.falls else 0


# ---- rules


@cache
def default_profile() -> Profile:
    module = load(Texts({}), DEFAULT).module
    assert module is not None
    return profiles(module)[0]


@cache
def profile_of(rules: str, uses: str, settings: str = "") -> Profile:
    """The profile of rules given as text; `uses` is what its provider says of them."""
    text = f'{rules}\nprovider P {{ {uses} }}\nprofile "default-scheduler" uses P {{ {settings} }}'
    found = load(Texts({"test.ksp": text}), "test.ksp")
    assert found.module is not None
    assert not found.failed, found.diagnostics
    return profiles(found.module)[0]


# ---- objects


def pod(
    name: str,
    *,
    requests: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    on: str = "",
    phase: str = "",
    nominated: str = "",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod, known by its name; further arguments are fields of its spec."""
    container = {"name": "main", "resources": {"requests": dict(requests or {"cpu": "1"})}}
    return convert(
        Pod,
        {
            "metadata": {"name": name, "uid": name, "namespace": "default", "labels": labels, **(metadata or {})},
            "spec": {"containers": [container], "nodeName": on, **spec},
            "status": {"phase": phase, "nominatedNodeName": nominated},
        },
    )


def info(name: str, **fields: Any) -> PodInfo:
    return PodInfo.of(pod(name, **fields))


def node(
    name: str,
    *,
    cpu: str = "4",
    pods: str = "110",
    zone: str = "",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    **status: Any,
) -> Node:
    """A node with 8Gi; further arguments are fields of its status."""
    return convert(
        Node,
        {
            "metadata": {"name": name, "labels": {**(labels or {}), **({ZONE: zone} if zone else {})}},
            "spec": {"taints": list(taints)},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}, **status},
        },
    )


def anti_affinity(app: str, topology: str = ZONE) -> dict[str, Any]:
    """The field `affinity` of a pod that does not want to be near that app."""
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {REQUIRED: [term]}}


# ---- what decides


def cluster(*nodes: Node) -> ClusterState:
    state = ClusterState()
    for each in nodes:
        state.set_node(each)
    return state


def cycle_of(
    profile: Profile, state: ClusterState, dice: FakeDice | None = None, nominations: Nominations | None = None,
    **settings: Any,
) -> Cycle:  # fmt: skip
    """A cycle alone; it shows how nodes scored."""
    nominated = (nominations or Nominations()).nodes
    return Cycle(profile, Present.of(state), nominated, dice or FakeDice(), **{"keep_scores": True, **settings})


def scheduler(
    *profiles_: Profile, dice: FakeDice | None = None, assumed_ttl: float | None = None,
    extenders: Sequence[Extender] = (),
) -> Scheduler:  # fmt: skip
    used = profiles_ or [default_profile()]
    return Scheduler(used, dice or FakeDice(), assumed_ttl=assumed_ttl, extenders=extenders)


def stepped(subject: Scheduler, now: float = 0.0) -> Step:
    """The next attempt, of which there must be one."""
    step = subject.step(now)
    assert isinstance(step, Step)
    return step
