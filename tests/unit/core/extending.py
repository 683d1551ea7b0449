"""What tests of extenders share."""

from __future__ import annotations

from typing import Any

from tests.unit.core.scheduling import FakeDice, default_profile, scheduler

from ksp.core.changes import SetNode, SetPod
from ksp.core.questions import Answer, Ask, FilterAnswer
from ksp.core.scheduler import Scheduler, Step
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.extender import Extender
from ksp.policy.profile import Profile


def extender(name: str = "one", **fields: Any) -> Extender:
    """An extender that is asked to filter unless `fields` say otherwise."""
    return Extender(f"http://{name}", **{"filter_verb": "filter", **fields})


def extended(
    *extenders: Extender, nodes: tuple[Node, ...], pods: tuple[Pod, ...], profile: Profile | None = None,
    dice: FakeDice | None = None,
) -> Scheduler:  # fmt: skip
    """A scheduler with these extenders, nodes and pods."""
    subject = scheduler(profile or default_profile(), extenders=extenders, dice=dice)
    for node in nodes:
        subject.on(SetNode(node), 0.0)
    for pod in pods:
        subject.on(SetPod(pod), 0.0)
    return subject


def asked(subject: Scheduler, now: float = 0.0) -> Ask:
    """The next attempt asks something."""
    ask = subject.step(now)
    assert isinstance(ask, Ask)
    assert subject.asked is ask
    return ask


def next_ask(subject: Scheduler, *answers: Answer, now: float = 0.0) -> Ask:
    """The answers lead to other questions."""
    ask = subject.answer(answers, now)
    assert isinstance(ask, Ask)
    return ask


def ended(subject: Scheduler, *answers: Answer, now: float = 0.0) -> Step:
    """The answers end the attempt."""
    step = subject.answer(answers, now)
    assert isinstance(step, Step)
    assert subject.asked is None
    return step


def only(*nodes: str, **reasons: str) -> FilterAnswer:
    return FilterAnswer(nodes, reasons)
