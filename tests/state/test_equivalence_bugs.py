"""Equivalence classes against the bugs that made kube-scheduler give its own up (it had some from 1.6 to 1.13).

Each is a story told to schedulers that remember and to one that does not; all must decide the same at each step, and
what it has to be is said here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests.state.templates import (
    HOSTNAME,
    KNOWN,
    asking,
    claiming,
    likes,
    near,
    node,
    object_change,
    owned,
    spread,
)
from tests.state.test_equivalence_machine import default_rules
from tests.state.twins import Twins

from ksp.core.changes import Change, DeleteNode, DeleteObject, DeletePod, SetNode, SetObject, SetPod
from ksp.core.cycle import Decision
from ksp.core.node_order import ZONE
from ksp.core.scheduler import Scheduler
from ksp.core.state import NAMESPACED_KINDS
from ksp.model.apps import Service
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass

NO_CPU = "0/1 nodes are available: 1 Insufficient cpu."
CORDONED = "0/1 nodes are available: 1 node(s) were unschedulable."
ANTI = "didn't match pod affinity/anti-affinity"


def made(name: str, spec: dict[str, Any], *, on: str = "", labels: dict[str, str] | None = None, **more: Any) -> Pod:
    metadata = {"name": name, "uid": name, "namespace": "default", "labels": labels or {"app": "web"}, **more}
    return convert(Pod, {"metadata": metadata, "spec": {**spec, "nodeName": on}})


def machine(name: str, *, zone: str = "", cpu: str = "8", cordoned: bool = False, **labels: str) -> Node:
    metadata = {"name": name, "labels": {HOSTNAME: name, **({ZONE: zone} if zone else {}), **labels}}
    status = {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}}
    return convert(Node, {"metadata": metadata, "spec": {"unschedulable": cordoned}, "status": status})


class Story:
    """A cluster, and pods that come to it one by one."""

    def __init__(self, *nodes: Node) -> None:
        self.twins = Twins(default_rules())
        self.now = 0.0
        self.told(*(SetNode(each) for each in nodes))

    def told(self, *changes: Change) -> None:
        for change in changes:
            self.twins.on(change, self.now)

    def decided(self, pod: Pod) -> Decision:
        """The pod comes, and all say the same of it."""
        self.told(SetPod(pod))
        return self.tried(pod)

    def tried(self, pod: Pod) -> Decision:
        """It is its turn."""
        self.now += 11.0  # more than any backoff, less than the patience
        step = self.twins.step(self.now)
        assert step is not None
        assert step.pod.uid == pod.metadata.uid
        self.twins.compare_queues()
        return step.decision


# ---- a result that was computed before a change, and kept after it (k/k#61512, #62921, #63040, #67308)


def test_what_was_decided_before_a_node_changed_is_not_said_after_it() -> None:
    story = Story(machine("n0"))
    assert story.decided(made("a", asking(cpu="3"))).node == "n0"
    story.told(SetNode(machine("n0", cpu="5")))
    assert story.decided(made("b", asking(cpu="3"))).message == NO_CPU
    story.told(SetNode(machine("n0", cpu="6")))
    assert story.tried(made("b", asking(cpu="3"))).node == "n0"


@dataclass
class TellingDice:
    """Dice that tell of a change while they fall: in the middle of a decision."""

    scheduler: Scheduler
    changes: list[Change]

    def below(self, n: int) -> int:
        for change in self.changes:
            self.scheduler.on(change, 0.0)
        self.changes.clear()
        return 0


def test_a_change_in_the_middle_of_a_decision_counts_for_the_next() -> None:
    story = Story(machine("n0", cpu="4"), machine("n1", cpu="4"))
    web = asking(cpu="1")
    for scheduler in story.twins.all():
        told: list[Change] = [SetNode(machine("n0", cordoned=True)), SetNode(machine("n1", cpu="1"))]
        scheduler.cycles["default-scheduler"].dice = TellingDice(scheduler, told)
    assert story.decided(made("a", web)).node == "n0"
    assert story.decided(made("b", web)).node == "n1"
    said = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    assert story.decided(made("c", web)).message == said


def test_a_binding_that_fails_late_gives_the_place_back() -> None:
    story = Story(machine("n0", cpu="4"))
    first, second = made("a", asking(cpu="3")), made("b", asking(cpu="3"))
    assert story.decided(first).node == "n0"
    assert story.decided(second).message == NO_CPU
    story.twins.bind_failed("a", story.now)
    story.told(DeletePod("a"))
    assert story.tried(second).node == "n0"
    story.told(SetPod(made("b", asking(cpu="3"), on="n0")))
    assert story.decided(made("c", asking(cpu="3"))).message == NO_CPU


def test_what_was_said_with_nominated_pods_is_not_said_without_them() -> None:
    story = Story(machine("n0"))
    important, plain = {**asking(cpu="6"), "priority": 10}, asking(cpu="2")
    assert story.decided(made("a", asking(cpu="3"))).node == "n0"
    assert story.decided(made("vip", important)).message == NO_CPU
    story.twins.nominate("vip", "n0")
    assert story.decided(made("b", plain)).message == NO_CPU  # there is room, but not with the other there
    assert story.decided(made("c", plain)).message == NO_CPU
    story.told(DeletePod("c"), DeletePod("vip"))
    assert story.tried(made("b", plain)).node == "n0"
    assert story.decided(made("d", plain)).node == "n0"
    assert story.decided(made("e", plain)).message == NO_CPU


def test_a_node_that_goes_and_returns_is_not_what_it_was() -> None:
    story = Story(machine("n0"), machine("n1"))
    web = asking(cpu="1")
    assert story.decided(made("a", web)).node
    story.told(DeleteNode("n0"), SetNode(machine("n0", cordoned=True)), DeleteNode("n1"))
    assert story.decided(made("b", web)).message == CORDONED
    story.told(SetNode(machine("n1")), DeleteNode("n0"))
    assert story.tried(made("b", web)).node == "n1"


def test_a_node_that_takes_the_place_of_another_is_not_taken_for_it() -> None:
    """What is known of nodes by their number must not be said of the next one with it."""
    story = Story(machine("n0", cordoned=True), machine("n1", cordoned=True))
    web = asking(cpu="1")
    assert story.decided(made("a", web)).node == ""
    story.told(DeleteNode("n0"), SetNode(machine("n9")))
    assert story.tried(made("a", web)).node == "n9"
    story.told(DeleteNode("n1"), SetNode(machine("n8")), DeleteNode("n9"))
    assert story.decided(made("b", web)).node == "n8"


# ---- a pod that comes keeps others away (k/k#67680, #67818)


def test_a_pod_that_the_watch_shows_keeps_others_away() -> None:
    """The class has no affinity: nothing of its own says that other pods matter."""
    story = Story(machine("n0", zone="a"), machine("n1", zone="a"))
    assert story.decided(made("a", asking())).node
    story.told(SetPod(made("guard", near("podAntiAffinity", ZONE), on="n0", labels={"app": "guard"})))
    assert ANTI in story.decided(made("b", asking())).message
    assert story.decided(made("c", asking(), labels={"app": "db"})).node
    story.told(DeletePod("guard"))
    assert story.tried(made("b", asking())).node


def test_a_pod_that_was_just_decided_keeps_others_away() -> None:
    story = Story(machine("n0", zone="a"), machine("n1", zone="a"))
    alone = {**asking(), **near("podAntiAffinity", HOSTNAME)}
    assert {story.decided(made(name, alone)).node for name in ("a", "b")} == {"n0", "n1"}
    assert ANTI in story.decided(made("c", alone)).message
    assert ANTI in story.decided(made("d", asking())).message  # of a class of its own, and kept away too
    story.told(DeletePod("a"))
    assert story.tried(made("c", alone)).node


def test_a_guard_whose_terms_or_whose_nodes_change_keeps_others_away_from_there() -> None:
    story = Story(machine("n0", zone="a"), machine("n1", zone="b"))
    story.told(SetPod(made("guard", near("podAntiAffinity", ZONE), on="n0", labels={"app": "guard"})))
    assert story.decided(made("a", asking())).node == "n1"
    story.told(SetNode(machine("n0", zone="b")))
    assert ANTI in story.decided(made("b", asking())).message
    of_db = near("podAntiAffinity", ZONE, {"matchLabels": {"app": "db"}})
    story.told(SetPod(made("guard", of_db, on="n0", labels={"app": "guard"})))
    assert story.tried(made("b", asking())).node
    assert ANTI in story.decided(made("c", asking(), labels={"app": "db"})).message


def test_a_pod_whose_labels_change_is_another_neighbour() -> None:
    story = Story(machine("n0", zone="a"), machine("n1", zone="b"))
    beside = {**asking(), **near("podAffinity", ZONE)}
    story.told(SetPod(made("friend", asking(), on="n1")))
    assert story.decided(made("a", beside, labels={"app": "x"})).node == "n1"
    story.told(SetPod(made("friend", asking(), on="n1", labels={"app": "db"})))
    assert "didn't match pod affinity rules" in story.decided(made("b", beside, labels={"app": "x"})).message
    story.told(SetPod(made("other", asking(), on="n0")))
    assert story.tried(made("b", beside, labels={"app": "x"})).node == "n0"


def test_one_pod_can_change_what_all_nodes_are_to_a_class() -> None:
    """The first of a group may go anywhere; and the emptiest domain is what all domains are held against."""
    story = Story(*(machine(f"n{i}", zone=zone) for i, zone in enumerate("aab")))
    group = {**asking(), **near("podAffinity", HOSTNAME)}
    first = story.decided(made("g0", group)).node
    assert [story.decided(made(f"g{i}", group)).node for i in (1, 2)] == [first, first]
    even = {**asking(), **spread(ZONE, "DoNotSchedule", {"matchLabels": {"app": "even"}})}
    zones = [story.decided(made(f"e{i}", even, labels={"app": "even"})).node == "n2" for i in range(4)]
    assert sorted(zones) == [False, False, True, True]


# ---- who is alike: pods of one controller are not, for what is their own (k/k#56265)


def claim(name: str, volume: str = "", class_name: str = "fast", **more: Any) -> SetObject:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    metadata = {"name": name, "namespace": "default", "annotations": annotations, **more}
    raw = {"metadata": metadata, "spec": {"volumeName": volume, "storageClassName": class_name}}
    return SetObject("persistentVolumeClaims", "default", name, convert(PersistentVolumeClaim, raw))


def volume(name: str, zone: str, driver: str = "d") -> SetObject:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    spec = {
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "csi": {"driver": driver, "volumeHandle": name},
    }
    return SetObject(
        "persistentVolumes", "", name, convert(PersistentVolume, {"metadata": {"name": name}, "spec": spec})
    )


def storage_class(mode: str) -> SetObject:
    raw = {"metadata": {"name": "fast"}, "provisioner": "d", "volumeBindingMode": mode}
    return SetObject("storageClasses", "", "fast", convert(StorageClass, raw))


def test_pods_of_a_stateful_set_do_not_share_what_their_claims_say() -> None:
    story = Story(machine("n0", zone="a"), machine("n1", zone="b"), machine("n2", zone="c"))
    for i, zone in enumerate("abc"):
        story.told(volume(f"v{i}", zone), claim(f"data-s-{i}", f"v{i}"))
    for i in (0, 1, 2, 1):
        replica = made(f"s-{i}", {**asking(), **claiming(f"data-s-{i}")}, **owned("StatefulSet", "s"))
        assert story.decided(replica).node == f"n{i}"
        story.told(DeletePod(f"s-{i}"))
    missing = made("s-3", {**asking(), **claiming("data-s-3")}, **owned("StatefulSet", "s"))
    assert story.decided(missing).message == 'persistentvolumeclaim "data-s-3" not found'


def test_pods_of_one_controller_with_other_specs_are_not_alike() -> None:
    """A controller whose template changed has pods of two kinds."""
    story = Story(machine("n0", cpu="4"), machine("n1", cpu="1", disk="ssd"))
    small, large = asking(cpu="1"), asking(cpu="3")
    chosen = [
        story.decided(made(f"{i}", spec, **owned("ReplicaSet", "r"))).node
        for i, spec in enumerate((large, {**small, "nodeSelector": {"disk": "ssd"}}, small, large))
    ]
    assert chosen == ["n0", "n1", "n0", ""]


def test_labels_that_read_alike_when_strung_together_are_not_alike() -> None:
    story = Story(machine("n0", zone="a"), machine("n1", zone="b"))
    guard = near("podAntiAffinity", ZONE, {"matchLabels": {"a": "bc"}})
    story.told(SetPod(made("guard", guard, on="n0", labels={"app": "guard"})))
    for i, labels in enumerate(({"ab": "c"}, {"a": "bc"}, {"a": "b", "c": ""}, {"a": "bc", "z": "z"})):
        refused = story.decided(made(f"{i}", asking(), labels=labels)).filtered.refused
        assert set(refused) == ({"n0"} if labels.get("a") == "bc" else set())


def test_pods_with_labels_of_their_own_are_placed_like_the_others() -> None:
    story = Story(*(machine(f"n{i}", zone="ab"[i % 2]) for i in range(4)))
    spec = {**asking(), **likes("podAntiAffinity", ZONE, 100, {"matchLabels": {"job": "j"}})}
    nodes = [story.decided(made(f"j-{i}", spec, labels={"job": "j", "index": str(i)})).node for i in range(4)]
    assert [int(name[1]) % 2 for name in nodes[::2]] != [int(name[1]) % 2 for name in nodes[1::2]]


# ---- volumes, claims and classes change (k/k#53516, #56104)


def with_claim(story: Story, *changes: Change) -> str:
    """What a pod with the claim `c` gets after these changes: a node, or a sentence."""
    story.told(*changes)
    name = f"p{story.now}"
    decision = story.decided(made(name, {**asking(), **claiming("c")}))
    story.told(DeletePod(name))
    return decision.node or decision.message


def test_changes_of_storage_are_seen_by_pods_that_use_it() -> None:
    story = Story(machine("n0", zone="a"), machine("n1", zone="b"))
    waits = [storage_class("WaitForFirstConsumer"), claim("c")]
    assert with_claim(story, *waits) in ("n0", "n1")
    assert with_claim(story, volume("v", "a"), claim("c", "v")) == "n0"
    assert with_claim(story, volume("v", "b")) == "n1"
    assert "volume node affinity conflict" in with_claim(story, volume("v", "nowhere"))
    assert "could not find" in with_claim(story, *gone("persistentVolumes", "v"))
    assert with_claim(story, volume("v", "b")) == "n1"
    assert with_claim(story, claim("c"), storage_class("Immediate")).endswith(
        "unbound immediate PersistentVolumeClaims."
    )
    assert with_claim(story, storage_class("WaitForFirstConsumer")) in ("n0", "n1")
    assert "is being deleted" in with_claim(story, claim("c", deletionTimestamp="2020-01-01T00:00:00Z"))
    assert with_claim(story, *gone("persistentVolumeClaims", "c")) == 'persistentvolumeclaim "c" not found'
    assert with_claim(story, claim("c", "v")) == "n1"


def gone(kind: str, name: str) -> list[Change]:
    return [DeleteObject(kind, "default" if kind in NAMESPACED_KINDS else "", name)]


def test_limits_of_storage_drivers_are_seen_when_they_change() -> None:
    story = Story(machine("n0", zone="a"))

    def limit(count: int) -> SetObject:
        raw = {"metadata": {"name": "n0"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": count}}]}}
        return SetObject("csiNodes", "", "n0", convert(CSINode, raw))

    for i in range(4):
        story.told(volume(f"v{i}", "a"), claim(f"c{i}", f"v{i}"))
    story.told(limit(1))
    specs = [{**asking(), **claiming(f"c{i}")} for i in range(4)]
    assert story.decided(made("a", specs[0])).node == "n0"
    assert "exceed max volume count" in story.decided(made("b", specs[1])).message
    story.told(limit(2))
    assert story.tried(made("b", specs[1])).node == "n0"
    assert "exceed max volume count" in story.decided(made("c", specs[2])).message
    story.told(volume("v0", "a", driver="another"))  # of a pod that has its place: it counts for another driver now
    assert story.tried(made("c", specs[2])).node == "n0"


def test_a_service_that_comes_spreads_the_pods_that_it_selects() -> None:
    story = Story(machine("n0"), machine("n1"), machine("n2", cpu="1"))
    story.told(SetPod(made("there", {}, on="n0")), SetPod(made("here", {}, on="n0")), SetPod(made("and", {}, on="n1")))
    assert story.decided(made("a", asking(), labels={"app": "db"})).node
    service = convert(Service, {"metadata": {"name": "s"}, "spec": {"selector": {"app": "web"}}})
    before = scores(story, made("b", asking()))
    story.told(SetObject("services", "default", "s", service))
    after = scores(story, made("c", asking()))
    assert before == [100, 100, 100]
    assert sorted(after, reverse=True) != before
    story.told(object_change("services", "s", -1))
    assert scores(story, made("d", asking())) == before


def scores(story: Story, pod: Pod) -> list[int]:
    """What the pod's siblings make of the nodes."""
    decision = story.twins.probe(PodInfo.of(pod))
    assert decision.scored is not None
    return list(decision.scored.by_plugin["SelectorSpread"])


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in KNOWN}))
def test_every_kind_of_object_is_among_the_changes(kind: str) -> None:
    """Of the machine that looks for such bugs at random."""
    values = [object_change(kind, name, at) for of, name in KNOWN if of == kind for at in (0, 1, -1)]
    assert len(values) == len({repr(value) for value in values})
    assert {type(value).__name__ for value in values} == {"SetObject", "DeleteObject"}


def test_nodes_of_the_machine_can_lack_their_name_as_a_label() -> None:
    assert HOSTNAME in node("n0", 0).metadata.labels
    assert HOSTNAME not in node("n0", 0, hostname=False).metadata.labels
