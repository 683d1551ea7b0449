"""A copy of a node with other pods on it shows the same sums as the node itself would."""

from __future__ import annotations

import random

from tests.state.objects import node, pod

from ksp.core.bare_node import BareNode
from ksp.core.state import ClusterState
from ksp.core.what_if import WhatIf
from ksp.model.info import NodeInfo, PodInfo


def sums(info: NodeInfo) -> object:
    return dict(info.requested), dict(info.nonzero_requested), info.pod_count, info.host_ports


def test_sums_are_those_of_a_what_if_whoever_comes_and_goes() -> None:
    dice = random.Random(1)
    for _ in range(100):
        state = ClusterState()
        state.set_node(node("n"))
        pods = [pod(f"p{i}", cpu=f"{dice.randrange(3)}00m", host_port=dice.choice([0, 0, 80 + i])) for i in range(5)]
        for each in pods:
            state.add_pod(each, "n")
        others = [pod(f"o{i}", host_port=90 + i) for i in range(2)]
        bare = BareNode(state.nodes["n"])
        with WhatIf(state) as trial:
            gone: set[PodInfo] = set()
            for _ in range(12):
                each = dice.choice(pods + others)
                if each in gone:
                    trial.restore(each.uid)
                    bare.restore(each)
                    gone.remove(each)
                elif each.uid in state.pods:
                    trial.remove(each.uid)
                    bare.remove(each)
                    if each not in others:
                        gone.add(each)
                elif not gone:
                    trial.add(each, "n")
                    bare.add(each)
                else:
                    continue
                if each in others and each.uid not in state.pods:
                    break  # a nominated pod that leaves does not come back
                assert sums(bare.node) == sums(state.nodes["n"])


def test_nobody_else_sees_the_copy() -> None:
    state = ClusterState()
    state.set_node(node("n"))
    there, other = pod("there", host_port=80), pod("other")
    state.add_pod(there, "n")
    info = state.nodes["n"]
    before, generation = sums(info), state.generation
    bare = BareNode(info)
    bare.add(other)
    bare.remove(there)
    assert bare.node.pod_count == 1
    assert bare.node.labels is info.labels
    assert (sums(info), state.generation) == (before, generation)
    assert there.node is info
    assert list(info.pods) == ["there"]
