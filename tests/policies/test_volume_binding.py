"""The rule CheckVolumeBinding and the volume binder say the same of each pod and node: where the rule admits a pod, the
binder finds volumes, and where it does not, gives the same reason."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.state import storage
from tests.state.plain_filter import PlainFilter

from ksp.compile.runtime import Denial, Failure
from ksp.compile.tables import Tables
from ksp.core.changes import PodVolumes
from ksp.core.filter import Filtered
from ksp.core.state import ClusterState
from ksp.core.volume_binder import VolumeBinder, VolumeError
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.policy.load import load, profiles
from ksp.policy.profile import Profile
from ksp.source.origin import Texts

HOSTS = ("a", "b")
CLAIMS = ("c0", "c1", "c2")
VOLUMES = ("v0", "v1", "v2", "v3")

hosts = st.lists(st.sampled_from(HOSTS), max_size=2, unique=True)
sizes = st.sampled_from(["1Gi", "2Gi", "1024Mi", "much"])
mostly_local = st.sampled_from(["local", "local", "local", "made", "made", "made-on-a", "now", "odd", "gone"])


@st.composite
def volumes(draw: st.DrawFn, name: str) -> PersistentVolume:
    """Some are promised: to a claim, to an older one of its name, or by name alone."""
    to = draw(st.none() | st.builds(storage.ref, st.sampled_from(CLAIMS), st.sampled_from(["", "uid-c0", "uid-c1"])))
    deleted = draw(st.sampled_from([None, None, None, "2020-01-01T00:00:00Z"]))
    return storage.volume(
        name, size=draw(sizes), nodes=draw(hosts), of=draw(mostly_local), to=to,
        phase=draw(st.sampled_from(["Available", "Available", "Bound"])), deletionTimestamp=deleted,
    )  # fmt: skip


@st.composite
def claims(draw: st.DrawFn, name: str) -> PersistentVolumeClaim:
    """Of all sorts."""
    return storage.claim(
        name, size=draw(sizes), of=draw(mostly_local), volume=draw(st.sampled_from(["", "", "", "v0", "v9"])),
        selected=draw(st.sampled_from(["", "", "", "a", "b"])), complete=draw(st.booleans()),
    )  # fmt: skip


def open_claims(name: str) -> st.SearchStrategy[PersistentVolumeClaim]:
    """Those that wait for a pod, and mostly find something."""
    return st.builds(storage.claim, st.just(name), of=st.sampled_from(["local", "made"]), size=sizes)


some_volumes = st.sets(st.sampled_from(VOLUMES)).flatmap(lambda names: st.tuples(*map(volumes, sorted(names))))
every_claim = st.tuples(*map(claims, CLAIMS))
every_open_claim = st.tuples(*map(open_claims, CLAIMS))
used = st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3)


CLASS_OF: dict[str, StorageClass] = {
    "local": storage.storage_class("local"),
    "made": storage.storage_class("made", "example.com/disks"),
    "made-on-a": storage.storage_class("made-on-a", "example.com/disks", hosts=["a"]),
    "now": storage.storage_class("now", "example.com/disks", mode="Immediate"),
    "odd": storage.storage_class("odd", "example.com/disks", mode=None),
}


@cache
def rule() -> Profile:
    text = 'import "ksp:volumes.ksp"\nprovider P { predicates { CheckVolumeBinding } }\nprofile "s" uses P { }'
    found = load(Texts({"p.ksp": text}), "p.ksp")
    assert found.module is not None, found.diagnostics
    return profiles(found.module)[0]


def judged(state: ClusterState, pod: PodInfo) -> dict[str, str]:
    """By node, "" where the rule admits the pod, else what it says."""
    found: Filtered = PlainFilter(rule(), state, Tables(state), dict).run(pod, state.node_list())
    if found.before is not None:
        return dict.fromkeys(HOSTS, told(found.before.answer))
    return {node: told(found.refused[node].answer) if node in found.refused else "" for node in HOSTS}


def told(answer: Denial | Failure) -> str:
    return ", ".join(answer.reasons) if isinstance(answer, Denial) else answer.message


def world(some: Iterable[PersistentVolume], every: Iterable[PersistentVolumeClaim]) -> VolumeBinder:
    state = ClusterState()
    for name, of in CLASS_OF.items():
        state.set_object("storageClasses", "", name, of)
    for host in HOSTS:
        state.set_node(storage.node(host))
    binder = VolumeBinder(state)
    for volume in some:
        binder.set("persistentVolumes", "", volume.metadata.name, volume)
    for claim in every:
        binder.set("persistentVolumeClaims", "default", claim.metadata.name, claim)
    return binder


def found_or_why(binder: VolumeBinder, pod: PodInfo, host: str) -> PodVolumes | str:
    try:
        return binder.find(pod, binder.state.nodes[host])
    except VolumeError as error:
        return str(error)


@settings(max_examples=300)
@given(some_volumes, every_claim, used)
def test_the_rule_and_the_binder_agree(
    some: tuple[PersistentVolume, ...], every: tuple[PersistentVolumeClaim, ...], names: list[str]
) -> None:
    binder, pod = world(some, every), storage.pod("p", *names)
    for host, reason in judged(binder.state, pod).items():
        found = found_or_why(binder, pod, host)
        assert (found if isinstance(found, str) else "") == reason


@settings(max_examples=100)
@given(some_volumes, every_open_claim, used, used)
def test_they_agree_on_what_is_assumed_and_the_first_pod_keeps_its_volumes(
    some: tuple[PersistentVolume, ...], every: tuple[PersistentVolumeClaim, ...], first: list[str], second: list[str]
) -> None:
    """Whoever comes next gets other volumes, or shares the claim: then the same ones, on the same node."""
    binder, one, two = world(some, every), storage.pod("one", *first), storage.pod("two", *second)
    found = found_or_why(binder, one, "a")
    assume(isinstance(found, PodVolumes) and bool(found))
    assert isinstance(found, PodVolumes)
    binder.assume(one, "a", found)
    promised = {v.metadata.name: c.metadata.name for v, c in found.static}
    for host, reason in judged(binder.state, two).items():
        other = found_or_why(binder, two, host)
        assert (other if isinstance(other, str) else "") == reason
        if isinstance(other, PodVolumes):
            for volume, claim in other.static:
                assert promised.get(volume.metadata.name, claim.metadata.name) == claim.metadata.name
            assert host == "a" or not any(claim in found.dynamic for claim in other.dynamic)


@settings(max_examples=100)
@given(some_volumes, every_open_claim, used)
def test_every_open_claim_gets_one_volume_or_is_to_get_one(
    some: tuple[PersistentVolume, ...], every: tuple[PersistentVolumeClaim, ...], names: list[str]
) -> None:
    binder = world(some, every)
    found = found_or_why(binder, storage.pod("p", *names), "b")
    assume(isinstance(found, PodVolumes))
    assert isinstance(found, PodVolumes)
    waiting = {c.metadata.name for c in every if c.metadata.name in names}
    got = [c.metadata.name for _, c in found.static] + [c.metadata.name for c in found.dynamic]
    assert sorted(got) == sorted(waiting)
    volumes = [v.metadata.name for v, _ in found.static]
    assert len(volumes) == len(set(volumes))
