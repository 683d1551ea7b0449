"""Whose bytes are kept, for extenders."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from ksp.kube.watch.objects import Readable, read_object
from ksp.kube.watch.raw import Kept, RawNode, RawPod, has_bytes
from ksp.kube.watch.resources import RESOURCES
from ksp.policy.extender import Extender

META = b'"metadata":{"name":"x","namespace":"d","uid":"u","resourceVersion":"7"}'
WAITING = b'{%b,"spec":{"unheard":[1.0]}}' % META
RUNNING = b'{%b,"spec":{"nodeName":"n"}}' % META
FINISHED = b'{%b,"status":{"phase":"Succeeded"}}' % META
NODE = b'{%b,"status":{"unheard":{}}}' % META

FILTER = Extender("http://x", filter_verb="f")
CAPABLE = replace(FILTER, node_cache_capable=True)
PREEMPT = Extender("http://x", preempt_verb="p")
BIND = Extender("http://x", bind_verb="b")


def read(kind: str, kept: Kept, data: bytes | msgspec.Raw) -> object:
    keep = kept.pod if kind == "Pod" else kept.node
    found = read_object(replace(RESOURCES[kind], with_bytes=keep), data)
    assert isinstance(found, Readable)
    return found.value


@pytest.mark.parametrize(
    ("extenders", "waiting", "running", "node"),
    [
        ([], False, False, False),
        ([BIND], False, False, False),
        ([CAPABLE], True, False, False),
        ([FILTER], True, False, True),
        ([PREEMPT], True, True, False),
        ([replace(PREEMPT, node_cache_capable=True)], True, False, False),
        ([BIND, CAPABLE, PREEMPT, FILTER], True, True, True),
    ],
)
def test_what_an_extender_may_be_sent_is_kept(
    extenders: list[Extender], waiting: bool, running: bool, node: bool
) -> None:
    kept = Kept()
    kept.use([FILTER, PREEMPT])
    kept.use(extenders)
    assert has_bytes(read("Pod", kept, WAITING)) is waiting
    assert has_bytes(read("Pod", kept, RUNNING)) is running
    assert has_bytes(read("Node", kept, NODE)) is node


def test_the_bytes_are_those_of_the_server() -> None:
    everything = Kept(pods=True, nodes=True)
    pod, node = read("Pod", everything, WAITING), read("Node", everything, msgspec.Raw(NODE))
    assert isinstance(pod, RawPod)
    assert isinstance(node, RawNode)
    assert (pod.raw, node.raw) == (WAITING, NODE)
    assert type(node.raw) is bytes  # and not a view of the page that it was in
    plain = read("Pod", Kept(), WAITING)
    assert (pod.metadata, pod.spec, pod.status) == (plain.metadata, plain.spec, plain.status)  # type: ignore[attr-defined]


def test_of_what_nobody_asks_for_nothing_is_kept() -> None:
    assert not has_bytes(read("Pod", Kept(pods=True), FINISHED))
