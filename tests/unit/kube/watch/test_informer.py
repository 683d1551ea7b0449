from __future__ import annotations

import msgspec
import pytest
from tests.unit.kube import api_objects
from tests.unit.kube.recorder import Recorder

from ksp.kube.watch.indexer import Indexer, by_namespace
from ksp.kube.watch.informer import Informer
from ksp.kube.watch.resources import RESOURCES, Object
from ksp.kube.watch.shared_informers import SharedInformers
from ksp.model.decode import CLUSTER_SCOPED, KINDS
from ksp.model.pod import Pod


def pod(name: str, version: int, uid: str = "", node: str = "") -> Pod:
    return msgspec.convert(api_objects.pod(name, version, uid, node=node), Pod)


def by_node(value: Pod) -> tuple[str, ...]:
    return (value.spec.node_name,) if value.spec.node_name else ()


def names(found: object) -> set[str]:
    return {value.metadata.name for value in found}  # type: ignore[attr-defined]


def informer() -> tuple[Informer[Pod], Recorder]:
    made: Informer[Pod] = Informer(RESOURCES["Pod"])
    handler = Recorder()
    made.add_handler(handler)
    return made, handler


def test_resources_are_kinds_of_the_model_with_its_scopes_and_structs() -> None:
    for kind, row in RESOURCES.items():
        assert row.kind == kind
        assert KINDS[kind] is row.struct
        assert row.namespaced == (kind not in CLUSTER_SCOPED)
        assert len({version.group for version in row.versions}) == 1


def test_lister_already_shows_what_a_handler_is_told() -> None:
    made: Informer[Pod] = Informer(RESOURCES["Pod"])
    seen: list[Pod | None] = []

    class Watcher(Recorder):
        def on_add(self, obj: Object) -> None:
            seen.append(made.lister.get("w/a"))

        def on_delete(self, obj: Object, known_final_state: bool) -> None:
            seen.append(made.lister.get("w/a"))

    made.add_handler(Watcher())
    made.fifo.put("w/a", pod("a", 1))
    made.deliver_some(1)
    made.fifo.delete("w/a", None)
    made.deliver_some(1)
    assert seen == [pod("a", 1), None]


def test_steps_that_wait_together_are_told_as_one() -> None:
    made, handler = informer()
    made.fifo.put("w/a", pod("a", 1))
    made.fifo.put("w/a", pod("a", 2))
    made.deliver_some(10)
    made.fifo.delete("w/a", pod("a", 5))
    made.fifo.put("w/a", pod("a", 6, uid="second"))
    made.fifo.put("w/a", pod("a", 7, uid="second"))
    made.deliver_some(10)
    assert handler.told == ["+w/a@2", "-w/a@5", "+w/a@7"]


def test_object_that_leaves_the_selector_and_comes_back_is_updated() -> None:
    made, handler = informer()
    made.fifo.put("w/a", pod("a", 1))
    made.deliver_some(1)
    made.fifo.delete("w/a", pod("a", 5))
    made.fifo.put("w/a", pod("a", 6))
    made.deliver_some(1)
    assert handler.told == ["+w/a@1", "w/a@1>6"]


def test_object_that_came_and_went_untold_is_never_told() -> None:
    made, handler = informer()
    made.fifo.put("w/a", pod("a", 1))
    made.fifo.delete("w/a", pod("a", 2))
    made.deliver_some(10)
    assert handler.told == []


def test_final_state_of_another_object_is_not_that_of_the_one_that_is_gone() -> None:
    made, handler = informer()
    made.fifo.put("w/a", pod("a", 1))
    made.deliver_some(1)
    made.fifo.put("w/a", pod("a", 6, uid="second"))
    made.fifo.delete("w/a", pod("a", 7, uid="second"))
    made.deliver_some(1)
    assert handler.told == ["+w/a@1", "-?w/a@1"]


def test_change_that_is_taken_back_before_it_is_told_is_no_change() -> None:
    """As when a list shows that the server's history went back."""
    made, handler = informer()
    made.fifo.put("w/a", pod("a", 1))
    made.deliver_some(1)
    made.fifo.put("w/a", pod("a", 6))
    made.fifo.put("w/a", pod("a", 1))
    made.deliver_some(1)
    assert handler.told == ["+w/a@1"]


def test_handler_that_comes_later_is_told_of_what_is_there() -> None:
    made, _ = informer()
    made.fifo.put("w/a", pod("a", 1))
    made.deliver_some(1)
    late = Recorder()
    made.add_handler(late)
    made.fifo.put("w/b", pod("b", 2))
    made.deliver_some(1)
    assert late.told == ["+w/a@1", "+w/b@2"]


def test_indexes_follow_the_objects() -> None:
    made, _ = informer()
    made.add_index("node", by_node)
    made.fifo.put("w/a", pod("a", 1))
    made.fifo.put("w/b", pod("b", 2, node="n1"))
    made.deliver_some(2)
    made.add_index("namespace", by_namespace)
    assert names(made.lister.by_index("node", "n1")) == {"b"}
    assert names(made.lister.by_index("namespace", "w")) == {"a", "b"}
    made.fifo.put("w/a", pod("a", 3, node="n1"))
    made.fifo.put("w/b", pod("b", 4, node="n2"))
    made.deliver_some(2)
    assert names(made.lister.by_index("node", "n1")) == {"a"}
    assert names(made.lister.by_index("node", "n2")) == {"b"}
    made.fifo.delete("w/a", None)
    made.deliver_some(1)
    assert names(made.lister.by_index("node", "n1")) == set()
    assert len(made.lister) == 1


def test_index_holds_no_empty_entries() -> None:
    store: Indexer[Pod] = Indexer()
    store.add_index("node", by_node)
    store.set("w/a", pod("a", 1, node="n1"))
    store.remove("w/a")
    store.remove("w/a")
    assert store._indexes == {"node": {}}


def test_index_that_nobody_added() -> None:
    store: Indexer[Pod] = Indexer()
    store.add_index("node", by_node)
    with pytest.raises(ValueError, match="node"):
        store.add_index("node", by_node)
    with pytest.raises(KeyError):
        store.by_index("zone", "z")


def test_kind_that_nobody_asked_for() -> None:
    class Nobody:
        async def request(self, *_: object, **__: object) -> None: ...

        def stream(self, *_: object, **__: object) -> None: ...

    informers = SharedInformers(Nobody(), None, kinds=["Pod"])  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        informers.informer("Node")
    assert informers.waiting_for() == [("pods", "waiting for discovery")]


async def test_who_asks_is_told_of_a_list_after_the_handlers_are_told_of_all_of_it() -> None:
    made, handler = informer()
    lists: list[tuple[float, int]] = []
    made.tell_of_lists(lambda began: lists.append((began, len(handler.told))))
    replacement = made.fifo.replacing(3.0)
    for name in "abc":
        replacement.put(f"w/{name}", pod(name, 1))
    await replacement.finish()
    made.deliver_some(2)
    assert lists == []
    made.deliver_some(2)
    assert lists == [(3.0, 3)]
