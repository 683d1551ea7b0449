from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.model.info import NodeInfo
from ksp.model.meta import ObjectMeta
from ksp.model.node import Node
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.model.volumes import VolumeMap, match_volumes, matching, promised, reference_to

NODE = NodeInfo.of(Node(metadata=ObjectMeta(name="n1", labels={"zone": "a"})))
CLASS = "volume.beta.kubernetes.io/storage-class"


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the leaves of `change`; None takes a field away."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return {key: value for key, value in result.items() if value is not None}


def claim(name: str = "data", size: Any = "5Gi", **change: Any) -> PersistentVolumeClaim:
    base = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    }
    return msgspec.convert(merged(base, change), PersistentVolumeClaim)


def volume(name: str = "v1", size: Any = "10Gi", **change: Any) -> PersistentVolume:
    base = {
        "metadata": {"name": name, "labels": {"disk": "ssd"}},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}},
        "status": {"phase": "Available"},
    }
    return msgspec.convert(merged(base, change), PersistentVolume)


def ref(name: str, namespace: str = "ns", uid: str = "") -> dict[str, Any]:
    return {"claimRef": {"name": name, "namespace": namespace, "uid": uid}}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}}


def zone(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "zone", "operator": operator, "values": list(values)}]}


def named(operator: str, value: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [value]}]}


def unmatched(claims: Sequence[PersistentVolumeClaim], volumes: Sequence[PersistentVolume]) -> list[str]:
    objects = {"persistentVolumes": {v.metadata.name: v for v in volumes}}
    return [c.metadata.name for c in match_volumes(objects, claims, NODE)]


@dataclass(frozen=True)
class One:
    """One claim and one volume, each with a difference from the usual; do they match?"""

    what: str
    matches: bool
    claim: dict[str, Any] = field(default_factory=dict)
    volume: dict[str, Any] = field(default_factory=dict)


def capacity(size: Any) -> dict[str, Any]:
    return {"spec": {"capacity": {"storage": size}}}


def request(size: Any) -> dict[str, Any]:
    return {"spec": {"resources": {"requests": {"storage": size}}}}


def annotated(value: str, name: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {CLASS: value}}, "spec": {"storageClassName": name}}


MALFORMED = {"spec": {"selector": {"matchExpressions": [{"key": "disk", "operator": "Near"}]}}}

ONE = [
    One("the usual", matches=True),
    One("other class", matches=False, volume={"spec": {"storageClassName": "other"}}),
    One("no class on either side", matches=True, claim={"spec": {"storageClassName": None}},
        volume={"spec": {"storageClassName": None}}),
    One("claim's annotation wins", matches=True, claim=annotated("local", "other")),
    One("claim's annotation wins against", matches=False, claim=annotated("other", "local")),
    One("claim's annotation wins, empty", matches=False, claim=annotated("", "local")),
    One("volume's annotation wins", matches=True, volume=annotated("local", "other")),
    One("volume's annotation wins against", matches=False, volume=annotated("other", "local")),
    One("class annotation of a promised volume", matches=False, volume=annotated("other", "local")
        | {"spec": ref("data")}),
    One("claimed by another", matches=False, volume={"spec": ref("other")}),
    One("claimed from another namespace", matches=False, volume={"spec": ref("data", "elsewhere")}),
    One("claimed by an older object of that name", matches=False, volume={"spec": ref("data", uid="old")}),
    One("an empty reference is somebody else's", matches=False, volume={"spec": {"claimRef": {}}}),
    One("promised", matches=True, volume={"spec": ref("data")}),
    One("promised with uid", matches=True, volume={"spec": ref("data", uid="uid-data")}),
    One("promised: phase is not looked at", matches=True, volume={"spec": ref("data"), "status": {"phase": "Bound"}}),
    One("promised: nor is the selector", matches=True, claim={"spec": {"selector": {"matchLabels": {"disk": "hdd"}}}},
        volume={"spec": ref("data")}),
    One("promised: nor are access modes", matches=True, volume={"spec": {"accessModes": []} | ref("data")}),
    One("promised: too small", matches=False, volume=merged(capacity("1Gi"), {"spec": ref("data")})),
    One("promised: other mode", matches=False, volume={"spec": {"volumeMode": "Block"} | ref("data")}),
    One("promised: deleted", matches=False,
        volume={"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}, "spec": ref("data")}),
    One("promised: out of reach", matches=False, volume={"spec": ref("data") | affinity(zone("In", "b"))}),
    One("just enough", matches=True, volume=capacity("5Gi")),
    One("too small", matches=False, volume=capacity("4Gi")),
    One("the same in another unit", matches=True, claim=request("5Gi"), volume=capacity("5368709120")),
    One("too small by less than a byte", matches=False, claim=request("1001m"), volume=capacity("1000500u")),
    One("beyond 64 bits", matches=False, claim=request("30E"), volume=capacity("20E")),
    One("a size without end", matches=False, claim=request("1e999999999999"), volume=capacity("1E")),
    One("a number", matches=True, claim=request(5), volume=capacity(5)),
    One("nothing asked", matches=True, claim={"spec": {"resources": None}}),
    One("no capacity", matches=False, volume={"spec": {"capacity": None}}),
    One("nothing asked of no capacity", matches=True, claim={"spec": {"resources": None}},
        volume={"spec": {"capacity": None}}),
    One("request is no quantity", matches=False, claim=request("much")),
    One("request of a promised volume is no quantity", matches=False, claim=request("much"),
        volume={"spec": ref("data")}),
    One("capacity is no quantity", matches=False, volume=capacity("much")),
    One("mode is Filesystem if absent, volume", matches=True, claim={"spec": {"volumeMode": "Filesystem"}}),
    One("mode is Filesystem if absent, claim", matches=True, volume={"spec": {"volumeMode": "Filesystem"}}),
    One("block volume for a file system", matches=False, volume={"spec": {"volumeMode": "Block"}}),
    One("file system for a block claim", matches=False, claim={"spec": {"volumeMode": "Block"}}),
    One("both block", matches=True, claim={"spec": {"volumeMode": "Block"}}, volume={"spec": {"volumeMode": "Block"}}),
    One("being deleted", matches=False, volume={"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}),
    *(One(f"phase {phase}", matches=False, volume={"status": {"phase": phase}})
      for phase in ("", "Pending", "Bound", "Released", "Failed")),
    One("selected", matches=True, claim={"spec": {"selector": {"matchLabels": {"disk": "ssd"}}}}),
    One("not selected", matches=False, claim={"spec": {"selector": {"matchLabels": {"disk": "hdd"}}}}),
    One("an empty selector", matches=True, claim={"spec": {"selector": {}}}),
    One("a malformed selector", matches=False, claim=MALFORMED),
    One("a malformed selector, promised", matches=False, claim=MALFORMED, volume={"spec": ref("data")}),
    One("in reach", matches=True, volume={"spec": affinity(zone("In", "a", "b"))}),
    One("out of reach", matches=False, volume={"spec": affinity(zone("In", "b"))}),
    One("one term of two", matches=True, volume={"spec": affinity(zone("In", "b"), zone("Exists"))}),
    One("an affinity that requires nothing", matches=True, volume={"spec": {"nodeAffinity": {}}}),
    One("no terms", matches=False, volume={"spec": affinity()}),
    One("an empty term", matches=False, volume={"spec": affinity({})}),
    One("the node's name is not seen", matches=False, volume={"spec": affinity(named("In", "n1"))}),
    One("nor its absence", matches=True, volume={"spec": affinity(named("NotIn", "n1"))}),
    One("more access modes", matches=True, volume={"spec": {"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}}),
    One("fewer access modes", matches=False, claim={"spec": {"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}}),
    One("no access modes asked", matches=True, claim={"spec": {"accessModes": []}}),
]  # fmt: skip


@pytest.mark.parametrize("case", ONE, ids=lambda case: case.what)
def test_a_claim_and_a_volume(case: One) -> None:
    assert unmatched([claim(**case.claim)], [volume(**case.volume)]) == ([] if case.matches else ["data"])


FAR = affinity(zone("In", "b"))


def test_nothing_asked_nothing_left() -> None:
    assert unmatched([], [volume()]) == []


def test_without_volumes_all_are_left_in_order() -> None:
    assert unmatched([claim("b"), claim("a"), claim("c", "1Gi")], []) == ["b", "a", "c"]


def test_the_smallest_volume_is_taken() -> None:
    # Were the large volume given to the small claim, the large claim would find nothing.
    assert (
        unmatched([claim("small", "1Gi"), claim("large", "50Gi")], [volume("v1", "100Gi"), volume("v2", "2Gi")]) == []
    )


def test_the_smallest_claim_chooses_first() -> None:
    assert unmatched([claim("large", "8Gi"), claim("small", "7Gi")], [volume("v1", "9Gi")]) == ["large"]


def test_claims_are_ordered_by_less_than_a_byte() -> None:
    assert unmatched([claim("a", "1000002u"), claim("b", "1000001u")], [volume("v1", "2")]) == ["a"]


def test_of_claims_of_one_size_the_first_given_chooses_first() -> None:
    assert unmatched([claim("b", "1Gi"), claim("a", "1024Mi")], [volume()]) == ["a"]


def test_greed_is_not_corrected() -> None:
    # The small claim could take the block that only it can use, but takes the smallest.
    selector = {"selector": {"matchLabels": {"kind": "x"}}}
    claims = [claim("small", "1Gi"), claim("large", "2Gi", spec=selector)]
    volumes = [volume("v1", "3Gi", metadata={"labels": {"kind": "x"}}), volume("v2", "4Gi")]
    assert unmatched(claims, volumes) == ["large"]


def test_the_smallest_volume_out_of_reach_is_passed_over() -> None:
    assert unmatched([claim()], [volume("v1", "5Gi", spec=FAR), volume("v2", "6Gi")]) == []


@pytest.mark.parametrize("names", [("v1", "v2"), ("v2", "v1")])
def test_of_volumes_of_one_size_the_first_by_name_is_taken(names: tuple[str, str]) -> None:
    # The second claim can use only the volume that the first one has taken: v1, whatever the order.
    labels = {"v1": {"only": "this"}, "v2": {}}
    volumes = [volume(name, metadata={"labels": labels[name]}) for name in names]
    claims = [claim("a", "1Gi"), claim("b", "2Gi", spec={"selector": {"matchLabels": {"only": "this"}}})]
    assert unmatched(claims, volumes) == ["b"]


def test_a_promised_volume_goes_before_a_smaller_one() -> None:
    claims = [claim("a", "1Gi"), claim("b", "2Gi")]
    assert unmatched(claims, [volume("small", "3Gi"), volume("promised", "9Gi", spec=ref("a"))]) == []


def test_a_promised_volume_out_of_reach_leaves_the_claim_with_nothing() -> None:
    assert unmatched([claim()], [volume("v1", spec=ref("data") | FAR), volume("v2")]) == ["data"]


def test_a_promised_volume_that_is_too_small_is_passed_over() -> None:
    assert unmatched([claim()], [volume("v1", "1Gi", spec=ref("data")), volume("v2")]) == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_several_promised_the_first_by_name_decides(order: tuple[int, int]) -> None:
    volumes = [volume("v1", spec=ref("data") | FAR), volume("v2", spec=ref("data"))]
    assert unmatched([claim()], [volumes[i] for i in order]) == ["data"]


def test_a_claim_that_a_pod_names_twice_asks_twice() -> None:
    twice = [claim(), claim()]
    assert unmatched(twice, [volume("v1")]) == ["data"]
    assert unmatched(twice, [volume("v1", spec=ref("data"))]) == ["data"]
    assert unmatched(twice, [volume("v1", spec=ref("data")), volume("v2")]) == []


def test_a_malformed_claim_does_not_stop_the_others() -> None:
    assert unmatched([claim("bad", "much"), claim("odd", **MALFORMED), claim("good")], [volume()]) == ["bad", "odd"]


# ---- what was found, and promises


def test_pairs_are_in_the_order_of_choosing_and_the_rest_in_that_given() -> None:
    claims = [claim("huge", "90Gi"), claim("b", "8Gi"), claim("vast", "99Gi"), claim("a", "2Gi")]
    volumes = {v.metadata.name: v for v in (volume("v8", "8Gi"), volume("v3", "3Gi"), volume("v20", "20Gi"))}
    found = matching(volumes, claims, NODE.labels)
    assert [(v.metadata.name, c.metadata.name) for v, c in found.pairs] == [("v3", "a"), ("v8", "b")]
    assert [c.metadata.name for c in found.unmatched] == ["huge", "vast"]


def test_a_promise_names_the_claim_in_full_and_says_who_made_it() -> None:
    to = reference_to(claim(metadata={"resourceVersion": "7"}))
    found = promised(volume(), to)
    assert msgspec.to_builtins(found.spec.claim_ref) == {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "ns", "name": "data", "uid": "uid-data",
        "resourceVersion": "7",
    }  # fmt: skip
    assert found.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_a_promise_of_the_owner_stays_his() -> None:
    by_name = volume(spec=ref("data"), metadata={"annotations": {"mine": "yes"}})
    found = promised(by_name, reference_to(claim()))
    assert found.spec.claim_ref == reference_to(claim())
    assert found.metadata.annotations == {"mine": "yes"}


def test_a_promise_that_is_there_is_not_made_again() -> None:
    there = volume(spec=ref("data", uid="uid-data"))
    assert promised(there, reference_to(claim())) is there


def test_an_annotation_that_is_there_keeps_its_value() -> None:
    other = volume(spec=ref("other"), metadata={"annotations": {"pv.kubernetes.io/bound-by-controller": "true"}})
    assert promised(other, reference_to(claim())).metadata.annotations == other.metadata.annotations


# ---- what is remembered


def kept(*volumes: PersistentVolume) -> VolumeMap:
    found = VolumeMap()
    for each in volumes:
        found[each.metadata.name] = each
    return found


def pairs(volumes: VolumeMap, *claims: PersistentVolumeClaim) -> list[str]:
    return [v.metadata.name for v, _ in matching(volumes, claims, NODE.labels).pairs]


def test_volumes_that_come_change_or_go_are_noticed() -> None:
    volumes, wanted = kept(volume("v2")), claim()
    assert pairs(volumes, wanted) == ["v2"]
    volumes["v1"] = volume("v1")
    assert pairs(volumes, wanted) == ["v1"]
    volumes["v1"] = volume("v1", spec=ref("other"))
    assert pairs(volumes, wanted) == ["v2"]
    del volumes["v2"]
    assert pairs(volumes, wanted) == []


def test_other_claims_are_other_wishes() -> None:
    volumes = kept(volume("v1", "1Gi"), volume("v9", "9Gi"))
    small, large = claim("small", "1Gi"), claim("large", "9Gi")
    assert pairs(volumes, small) == ["v1"]
    assert pairs(volumes, large) == ["v9"]
    assert pairs(volumes, small, large) == ["v1", "v9"]
    assert pairs(volumes, small) == ["v1"]


CHANGES = st.tuples(
    st.sampled_from(["v1", "v2", "v3"]),
    st.none()  # it goes
    | st.fixed_dictionaries(
        {
            "spec": st.builds(
                lambda of, whose: {
                    "storageClassName": of,
                    "claimRef": None if whose is None else ref(*whose)["claimRef"],
                },
                st.sampled_from(["local", "other"]),
                st.sampled_from(
                    [None, None, ("data",), ("more",), ("data", "elsewhere"), ("data", "ns", "uid-of-old")]
                ),
            ),
            "metadata": st.sampled_from([{}, {"annotations": {CLASS: "other"}}]),
        }
    ),
)


@given(st.lists(CHANGES, max_size=12))
def test_volumes_that_a_claim_may_want_are_found_like_among_all(
    changes: list[tuple[str, dict[str, Any] | None]],
) -> None:
    volumes, plain = kept(), dict[str, PersistentVolume]()
    wanted = claim(), claim("more"), claim("others", spec={"storageClassName": "other"})
    for name, change in changes:
        if change is not None:
            volumes[name] = plain[name] = volume(name, **change)
        elif plain.pop(name, None) is not None:
            del volumes[name]
        assert volumes == plain
        assert matching(volumes, wanted, NODE.labels) == matching(plain, wanted, NODE.labels)


def test_nothing_changes_volumes_unnoticed() -> None:
    volumes = kept(volume("v1"))
    ways: list[Callable[[], object]] = [
        volumes.clear, volumes.popitem, lambda: volumes.pop("v1"), lambda: volumes.update({}),
        lambda: volumes.setdefault("v2", volume("v2")),
    ]  # fmt: skip
    for way in ways:
        with pytest.raises(TypeError, match="item by item"):
            way()
    assert pairs(deepcopy(volumes), claim()) == ["v1"]
