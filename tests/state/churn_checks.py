"""What must be so of a scheduler at any time, and of each of its decisions, by `tests.state.churn_model`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tests.state.churn_extenders import Exchange, Expected, Replay
from tests.state.churn_model import OPEN, Model, Phase, counted
from tests.state.churn_objects import with_metadata
from tests.state.churn_world import CLAIMS, VOLUMES
from tests.state.reference import PlainCycle

from ksp.compile.table import Table
from ksp.core.changes import Bind, BindVolumes, PodVolumes
from ksp.core.cycle import EMPTINESS, ITSELF, Decision
from ksp.core.equivalence.present import Present
from ksp.core.filter import Filtered
from ksp.core.nominations import Nominations
from ksp.core.preemption import NOT_ELIGIBLE, NotEligible, Preemption
from ksp.core.preemption.eligibility import resolvable
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler, Step
from ksp.core.state import ClusterState
from ksp.model.claims import is_bound
from ksp.model.info import HostPort, NodeInfo, PodInfo, affinity_term_matches
from ksp.model.volumes import is_promised, reference_to
from ksp.policy.extender import Extender
from ksp.policy.profile import Profile
from ksp.policy.unread import UnreadBy, UnreadFields

ONCE: Final = "ReadWriteOncePod"
ANYWHERE: Final = "0.0.0.0"


class FirstFace:
    """Dice for those who are asked what is possible, and not what happens."""

    def below(self, n: int) -> int:
        return 0


class Anew:
    """A scheduler's parts made of what the model has, with nothing remembered: what would be decided now."""

    def __init__(self, model: Model, profiles: Iterable[Profile], scheduler: Scheduler) -> None:
        rows, placed = scheduler.state.node_list(), model.placed()
        self.model = model
        self.state = model.state(
            [row.name for row in rows], [uid for row in rows for uid in row.pods if uid in placed]
        )  # fmt: skip
        self.nominations = self._nominations()
        self.cycles = {}
        self.preemptions = {}
        for profile in profiles:
            name, unread = profile.scheduler_name, UnreadBy(profile, UnreadFields.REFUSE)
            self.cycles[name] = PlainCycle(profile, self.state, self.nominations.nodes, FirstFace(), unread)
            self.preemptions[name] = Preemption(profile, Present.of(self.state), self.nominations, FirstFace())

    def _nominations(self) -> Nominations:
        found = Nominations()
        for uid, asked in self.model.asked.items():
            for place in asked:
                found.nominate(self.pod(uid), place)
            found.remove(uid)
        for uid, place in self.model.nominated.items():
            found.put(self.pod(uid), place)
        return found

    def pod(self, uid: str) -> PodInfo:
        return PodInfo.of(self.model.pods[uid])

    def decide(self, pod: PodInfo) -> Decision:
        """What the rules alone say."""
        return self.cycles[pod.scheduler_name].decide(pod)

    def victims(
        self, pod: PodInfo, decision: Decision, replay: Replay | None = None
    ) -> dict[str, list[str]] | NotEligible:
        """What preemption may choose: nodes with their victims."""
        preemption = self.preemptions[pod.scheduler_name]
        if not decision.denied_by.isdisjoint({ITSELF, EMPTINESS}):
            return {}
        if not preemption.eligible(pod, decision.filtered, self.model.victims()):
            return NOT_ELIGIBLE
        left = replay.victims(decision) if replay is not None else None
        if left is not None:
            return left
        options = preemption.search(pod).best(resolvable(decision.filtered, self.state))
        candidates = [option.candidate() for option in options]
        return {each.node: [victim.uid for victim in each.victims] for each in candidates}


# ---- decisions


def check_decision(step: Step, anew: Anew, extenders: Sequence[Extender], exchanges: Sequence[Exchange]) -> None:
    """The attempt ended as one ends in a state that was built anew, with the answers that were given."""
    pod, made = anew.pod(step.pod.uid), step.decision
    replay = Replay(anew, extenders, exchanges, pod)
    expected = replay.decision()
    plain = expected.decision
    if exchanges:
        check_extended(made, expected)
    else:
        check_same(made, plain)
    if made.node or made.failed:
        assert step.preempted is None
    else:
        check_preemption(step, anew, plain, replay)
    assert not replay.left, "who was asked had no say"


def check_extended(made: Decision, expected: Expected) -> None:
    """But for the dice."""
    plain = expected.decision
    assert (made.failed, made.denied_by, bool(made.node)) == (plain.failed, plain.denied_by, bool(expected.nodes))
    assert made.message == plain.message
    assert not made.node or made.node in expected.nodes
    if not made.failed:
        assert verdicts(made.filtered) == verdicts(plain.filtered)


def check_same(made: Decision, plain: Decision) -> None:
    """But for the dice."""
    assert (made.failed, made.denied_by, bool(made.node)) == (plain.failed, plain.denied_by, bool(plain.node))
    assert made.message == plain.message
    if not made.failed:
        assert verdicts(made.filtered) == verdicts(plain.filtered)
    if plain.scored is not None and not plain.failed:
        highest = max(plain.scored.total)
        scored = zip(plain.filtered.feasible, plain.scored.total, strict=True)
        assert made.node in {row.name for row, total in scored if total == highest}


def check_preemption(step: Step, anew: Anew, plain: Decision, replay: Replay) -> None:
    """Who has to go is what is said in a state that was built anew; and then the pod does fit, unless extenders have
    let some of them stay."""
    expected = anew.victims(anew.pod(step.pod.uid), plain, replay)
    if step.preempted is None or isinstance(expected, NotEligible):
        assert step.preempted is None, "pods are evicted for one that may not ask for it now"
        assert isinstance(expected, NotEligible) or not expected, expected
        return
    place, victims = step.preempted.node, [victim.uid for victim in step.preempted.victims]
    assert expected.get(place) == victims
    there = anew.model.on(place)
    assert {pod.uid: pod.priority for pod in there if pod.uid in victims}.keys() == set(victims), "not on the node"
    assert all(victim.priority < step.pod.priority for victim in step.preempted.victims)
    assert step.pod.spec.preemption_policy != "Never"
    left = [pod for pod in there if pod.uid not in victims]
    if not replay.extenders:
        check_room(anew.state.nodes[place], left, anew.pod(step.pod.uid))


def verdicts(filtered: Filtered) -> object:
    return filtered.before, [row.name for row in filtered.feasible], dict(filtered.refused)


def check_place(effect: Bind | BindVolumes, anew: Anew) -> None:
    """The pod has room on the node; of what belongs to one pod nobody else has it."""
    model, pod = anew.model, anew.pod(effect.pod.uid)
    there = model.on(effect.node)
    check_room(anew.state.nodes[effect.node], there, pod)
    for other in there:
        assert not any(_clash(one, two) for one in pod.host_ports for two in other.host_ports), "a port of the host"
        assert not _share_a_disk(pod, other), "a disk"
    placed = {uid: anew.state.nodes.get(place) for uid, place in model.placed().items()}
    for uid, row in placed.items():
        other = anew.pod(uid)
        assert row is None or not _avoid_each_other(pod, anew.state.nodes[effect.node], other, row), "anti-affinity"
        for name in set(pod.claim_names) & set(other.claim_names) if row is not None else ():
            claim = model.claim_of(pod.uid, name)
            assert claim is None or ONCE not in claim.spec.access_modes, "a claim for one pod"
    if isinstance(effect, BindVolumes):
        check_volumes(effect.volumes, model)


def check_room(row: NodeInfo, there: list[PodInfo], pod: PodInfo) -> None:
    """What PodFitsResources promises."""
    assert len(there) < row.allocatable["pods"], "no place is left"
    if any(pod.requests.values()):
        for resource, amount in counted([*there, pod]).items():
            assert resource not in pod.requests or amount <= row.allocatable.get(resource, 0), resource


def check_volumes(volumes: PodVolumes, model: Model) -> None:
    """They are as the API has them, and are free for the claims; no volume is given to two."""
    assert volumes
    given = [volume.metadata.name for volume, _ in volumes.static]
    assert len(set(given)) == len(given)
    for volume, claim in volumes.static:
        name = volume.metadata.name
        assert model.others[VOLUMES, "", name] == volume
        assert volume.spec.claim_ref is None or is_promised(volume, reference_to(claim))
        assert name not in model.promised or model.promised[name].what.metadata.uid == claim.metadata.uid
    for claim in [*(claim for _, claim in volumes.static), *volumes.dynamic]:
        assert model.others[CLAIMS, claim.metadata.namespace, claim.metadata.name] == claim
        assert not is_bound(claim)


def _clash(one: HostPort, two: HostPort) -> bool:
    return (one.port, one.protocol) == (two.port, two.protocol) and (one.ip == two.ip or ANYWHERE in (one.ip, two.ip))


def _share_a_disk(one: PodInfo, two: PodInfo) -> bool:
    mine, theirs = ([v.gce_persistent_disk for v in pod.spec.volumes if v.gce_persistent_disk] for pod in (one, two))
    return any(a.pd_name == b.pd_name and not (a.read_only and b.read_only) for a in mine for b in theirs)


def _avoid_each_other(one: PodInfo, its: NodeInfo, two: PodInfo, other: NodeInfo) -> bool:
    terms = [term for term in one.required_anti_affinity if affinity_term_matches(term, two)]
    terms += [term for term in two.required_anti_affinity if affinity_term_matches(term, one)]
    return any(
        term.topology_key in its.labels and its.labels[term.topology_key] == other.labels.get(term.topology_key)
        for term in terms
    )


# ---- at any time


def check_agreement(scheduler: Scheduler, model: Model, anew: Anew) -> None:
    check_queue(scheduler, model)
    check_cache(scheduler, model)
    check_rows(scheduler.state, anew.state, model)
    check_objects(scheduler.state, anew.state)
    check_views(scheduler)


def check_queue(scheduler: Scheduler, model: Model) -> None:
    """Who waits is there, and in flight only if a binding is, or a question open; claims and evictions are those of the
    model."""
    queue, asked = scheduler.queue, scheduler.asked
    assert {queued.uid for queued in queue} == {uid for uid in model.pods if model.waits(uid)}
    for queued in queue:
        open_ = asked is not None and asked.pod.uid == queued.uid
        assert (queued.place is Place.IN_FLIGHT) == (open_ or queued.uid in model.given), queued
    gated = [uid for uid in model.pods if model.wants_a_node(uid) and not model.waits(uid)]
    assert scheduler.pending()["gated"] == len(gated)
    assert {place: list(pods) for place, pods in queue.nominations.nodes().items()} == model.nominations()
    assert set(scheduler.evictions.victims) == model.victims()


def check_cache(scheduler: Scheduler, model: Model) -> None:
    assert scheduler.cache_size() == {
        "nodes": len(model.nodes), "pods": len(model.placed()), "assumed_pods": len(model.given),
    }  # fmt: skip
    waiting = [each for each in model.given.values() if each.phase in OPEN]
    assert len(scheduler.bindings) == len(waiting)
    late = [uid for uid, each in model.given.items() if each.phase is Phase.CLAIMS and model.has_its_volumes(uid)]
    assert not late, "claims are bound, and the pod is not"


def check_rows(state: ClusterState, fresh: ClusterState, model: Model) -> None:
    """Every pod counts where it is and nowhere else."""
    placed = model.placed()
    visible = {uid: place for uid, place in placed.items() if place in model.nodes}
    assert {uid: row.name for row in state.nodes.values() for uid in row.pods} == visible
    assert sum(len(row.pods) for row in state.nodes.values()) == len(visible)
    assert {uid: pod.node.name for uid, pod in state.pods.items()} == visible
    assert {pod.uid for pod in state.invisible_pods()} == placed.keys() - visible.keys()
    for name, row in state.nodes.items():
        new = fresh.nodes[name]
        assert (row.requested, row.nonzero_requested) == (new.requested, new.nonzero_requested)
        assert (row.allocatable, row.labels, row.spec) == (new.allocatable, new.labels, new.spec)
        assert sorted(map(repr, row.host_ports)) == sorted(map(repr, new.host_ports))
        assert [_read(pod) for pod in row.pods.values()] == [_read(pod) for pod in new.pods.values()]


def _read(pod: PodInfo) -> object:
    return pod.uid, pod.labels, pod.terminating, pod.spec, pod.status, pod.requests


def check_objects(state: ClusterState, fresh: ClusterState) -> None:
    """Objects of other kinds, with what is assumed of volumes and claims; versions alone are no difference."""
    assert _unversioned(state) == _unversioned(fresh)


def _unversioned(state: ClusterState) -> object:
    return {kind: {name: _without_version(obj) for name, obj in found.items()} for kind, found in state.objects.items()}


def _without_version(obj: Any) -> Any:
    if isinstance(obj, dict):
        return {name: _without_version(inner) for name, inner in obj.items()}
    return with_metadata(obj, resource_version="")


def check_views(scheduler: Scheduler) -> None:
    for table in scheduler.tables._tables.values():
        table.follow(scheduler.state)
        fresh = Table(table.plan, table.contribute)
        fresh.follow(scheduler.state)
        assert (table.result, table.total) == (fresh.result, fresh.total), table.plan.name
