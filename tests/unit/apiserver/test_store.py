"""Revisions, logs and old versions, against a model that keeps everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ksp.apiserver.store import DryRun, Event, Json, Store


def thing(name: str, value: int = 0, namespace: str = "") -> Json:
    meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"metadata": meta, "value": value}


def test_each_write_takes_the_next_revision_of_one_counter() -> None:
    store = Store()
    first = store.put("things", thing("a"))
    second = store.put("others", thing("b"))
    gone = store.remove("things", "", "a")
    assert gone is not None
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in (first, second, gone)]
    assert versions == [versions[0], versions[0] + 1, versions[0] + 2]
    assert store.revision == versions[-1]


def test_a_removed_object_keeps_the_version_that_was_stored() -> None:
    store = Store()
    stored = store.put("things", thing("a"))
    before = stored["metadata"]["resourceVersion"]
    store.remove("things", "", "a")
    assert stored["metadata"]["resourceVersion"] == before


def test_objects_come_by_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a-", "c"), ("a", "b")):
        store.put("things", thing(name, namespace=namespace))
    keys = [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in store.list("things")]
    assert keys == [("a", "b"), ("a", "z"), ("a-", "c"), ("b", "x")]
    assert [obj["metadata"]["name"] for obj in store.list("things", "a")] == ["b", "z"]


def test_listeners_are_told_at_once_and_in_order() -> None:
    store = Store()
    told: list[tuple[str, int]] = []

    def listen(event: Event) -> None:
        told.append((event.type, event.current["value"]))

    store.kind("things").listeners.add(listen)
    store.put("things", thing("a", 1))
    store.put("things", thing("a", 2))
    store.remove("things", "", "a")
    assert told == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2)]


def test_the_log_is_bounded_and_says_from_where() -> None:
    store = Store(window=2)
    kind = store.kind("things")
    for value in range(4):
        store.put("things", thing("a", value))
    assert [event.current["value"] for event in kind.log] == [2, 3]
    assert kind.since == store.revision - 2
    assert [event.current["value"] for event in kind.events_after(kind.since)] == [2, 3]


def test_a_restart_keeps_objects_and_forgets_the_log() -> None:
    store = Store()
    store.put("things", thing("a"))
    store.restart(writes=3)
    assert store.get("things", "", "a") is not None
    assert list(store.kind("things").log) == []
    assert store.kind("things").since == store.kind("made later").since == store.revision


def test_a_dry_run_writes_nothing() -> None:
    store = Store()
    store.put("things", thing("a", 1))
    dry = DryRun(store)
    dry.put("things", thing("b"))
    dry.remove("things", "", "a")
    assert [obj["metadata"]["name"] for obj in store.list("things")] == ["a"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "remove"])), max_size=30))
def test_every_version_can_be_told_again(writes: list[tuple[str, str]]) -> None:
    store = Store()
    states: dict[int, dict[str, int]] = {store.revision: {}}
    now: dict[str, int] = {}
    for index, (name, what) in enumerate(writes):
        if what == "put":
            store.put("things", thing(name, index))
            now[name] = index
        elif store.remove("things", "", name) is not None:
            del now[name]
        states[store.revision] = dict(now)
    for revision, expected in states.items():
        found = store.kind("things").at(revision)
        assert {key[1]: obj["value"] for key, obj in found.items()} == expected


@given(st.integers(0, 300), st.integers(0, 300))
def test_events_after_a_revision(count: int, back: int) -> None:
    store = Store()
    for value in range(count):
        store.put("things", thing("a", value))
    after = store.revision - back
    found = [event.revision for event in store.kind("things").events_after(after)]
    assert found == [revision for revision in range(2, store.revision + 1) if revision > after]
