"""From the core's questions to those over HTTP, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from aiohttp import web
from tests.unit.core.scheduling import info
from tests.unit.kube.extender_server import ExtenderServer, extending

from ksp.core.questions import (
    Ask,
    Failed,
    Filter,
    FilterAnswer,
    NodeVictims,
    Priorities,
    Prioritize,
    ProcessPreemption,
    Victims,
    VictimUids,
)
from ksp.kube.errors import ApiError
from ksp.kube.timers import SystemTimers
from ksp.kube.watch.raw import Kept
from ksp.kube.write.settling import Kind, Sent
from ksp.kube.write.writes import Bound, NotBound, Send
from ksp.model.info import PodInfo
from ksp.policy.extender import Extender
from ksp.runtime.bodies import Bodies
from ksp.runtime.questions import GONE, Questions


@dataclass
class World:
    """Bodies that say whose they are, a settler that shows what it is told, and the extenders of now."""

    extenders: list[Extender] = field(default_factory=list)
    gone: bool = False
    trouble: bool = False
    leads: bool = True
    forgotten: int = 0
    told: list[tuple[str, str]] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)
    sent: list[Sent] = field(default_factory=list)

    async def pod(self, pod: PodInfo) -> bytes | None:
        if self.trouble:
            raise ApiError(403, "Forbidden", "no")
        return None if self.gone else b'{"pod":"%b"}' % pod.name.encode()

    async def pods(self, pods: Sequence[PodInfo]) -> dict[str, bytes]:
        return {pod.uid: b'{"pod":"%b"}' % pod.name.encode() for pod in pods}

    def forget(self) -> None:
        self.forgotten += 1

    async def nodes(self, names: Sequence[str]) -> bytes:
        return b",".join(b'{"node":"%b"}' % name.encode() for name in names)

    async def bind(self, pod: PodInfo, node: str, send: Send | None = None) -> Bound | NotBound:
        assert send is not None
        self.sent.append(await send(pod, node))
        return Bound() if self.sent[-1].kind is Kind.DONE else NotBound(self.sent[-1].message)

    def questions(self) -> Questions:
        return Questions(
            lambda: self.extenders, cast("Bodies", self), self.kept, self, SystemTimers(), {},
            lambda *about: self.told.append(about[1:3]), lambda: self.leads,
        )  # fmt: skip


def extender(server: ExtenderServer, *verbs: str, **fields: Any) -> Extender:
    asked: dict[str, Any] = {f"{verb}_verb": verb for verb in verbs}
    return Extender(server.url, **asked, **fields)


async def test_answers_come_in_the_order_of_the_questions() -> None:
    world = World()
    async with extending({"prioritize": lambda _: [{"Host": "a", "Score": 1}]}) as one, extending({}) as two:
        asked = [extender(one, "prioritize"), extender(two, "prioritize", timeout=0.05)]
        two.verbs["prioritize"] = two.never
        world.extenders = asked
        questions = world.questions()
        ask = Ask(info("p"), tuple(Prioritize(each, ("a", "b")) for each in reversed(asked)))
        failed, scores = await questions.answers(ask)
        await questions.close()
    assert isinstance(failed, Failed)
    assert scores == Priorities({"a": 1})
    assert sorted(world.told) == [("prioritize", "ok"), ("prioritize", "timeout")]
    (question,) = one.asked["prioritize"]
    assert question["Pod"] == {"pod": "p"}
    assert question["Nodes"]["items"] == [{"node": "a"}, {"node": "b"}]


async def test_each_question_has_its_answer() -> None:
    world = World()
    left = {"items": [{"metadata": {"name": "a"}}]}
    filters = {"Nodes": left, "FailedNodes": {"b": "x"}, "FailedAndUnresolvableNodes": {"c": "y"}}
    removes = {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "v"}], "NumPDBViolations": 1}}}
    async with extending({"filter": lambda _: filters, "preempt": lambda _: removes}) as server:
        asked = extender(server, "filter", "preempt")
        questions = world.questions()
        victims = {"a": NodeVictims((info("v"),), 1)}
        ask = Ask(info("p"), (Filter(asked, ("a", "b", "c")), ProcessPreemption(asked, victims)))
        answers = await questions.answers(ask)
        await questions.close()
    assert answers == (FilterAnswer(("a",), {"b": "x"}, {"c": "y"}), Victims({"a": VictimUids(("v",), 1)}))
    (question,) = server.asked["preempt"]
    assert question["NodeNameToVictims"] == {"a": {"Pods": [{"pod": "v"}], "NumPDBViolations": 1}}


async def test_nobody_is_asked_about_a_pod_that_is_gone_or_cannot_be_shown() -> None:
    async with extending({}) as server:
        ask = Ask(info("p"), (Filter(extender(server, "filter"), ("a",)),))
        assert await World(gone=True).questions().answers(ask) == (Failed(GONE),)
        (failed,) = await World(trouble=True).questions().answers(ask)
    assert isinstance(failed, Failed)
    assert failed.message == "cannot list what extenders are to be sent: 403 Forbidden: no"
    assert server.asked == {}


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        ({}, (Kind.DONE, "")),
        ({"Error": "no room"}, (Kind.REFUSED, "no room")),
        (web.Response(status=500), (Kind.CONFLICT, "bind is answered with status 500")),
        (web.Response(text="<html>"), (Kind.UNKNOWN, "cannot read its answer to bind")),
    ],
)
async def test_what_a_binding_comes_to(answer: Any, sent: tuple[Kind, str]) -> None:
    world = World()
    async with extending({"bind": lambda _: answer}) as server:
        questions = world.questions()
        await questions.bind(extender(server, "bind"), info("p"), "n")
        await questions.close()
    (found,) = world.sent
    assert found.kind is sent[0]
    assert sent[1] in found.message


async def test_who_was_not_reached_or_may_not_be_asked_has_bound_nothing() -> None:
    world = World()
    async with extending({"bind": lambda _: {}}) as server:
        asked, questions = extender(server, "bind"), world.questions()
        world.leads = False
        await questions.bind(asked, info("p"), "n")
        assert server.asked == {}
        world.leads = True
    await questions.bind(asked, info("p"), "n")
    await questions.close()
    assert [each.kind for each in world.sent] == [Kind.UNPROCESSED, Kind.UNPROCESSED]
    assert not any(each.unreached for each in world.sent)  # which is said of the API server, and waited for


async def test_connections_of_extenders_that_are_not_asked_any_more_end() -> None:
    world = World()
    async with extending({"filter": lambda _: {"NodeNames": []}}) as server:
        old, new = extender(server, "filter"), extender(server, "filter", weight=2)
        questions = world.questions()
        for each in (old, new):
            world.extenders = [each]
            questions.follow()
            await questions.answers(Ask(info("p"), (Filter(each, ("a",)),)))
        assert list(questions._clients) == [new]
        (retired,) = questions._retired
        await retired.close()
        assert retired.closed
        assert world.kept.nodes
        assert world.forgotten == 1  # what is kept is the same afterwards
        world.extenders = []
        questions.follow()
        assert world.kept == Kept()
        assert world.forgotten == 2
        assert not questions._clients
        await questions.close()


async def test_an_extender_that_hangs_is_given_as_long_again_to_bind() -> None:
    world = World()
    async with extending({}) as server:
        server.verbs["bind"] = server.never
        questions = world.questions()
        await questions.bind(extender(server, "bind", timeout=0.05), info("p"), "n")
        await questions.close()
    (sent,) = world.sent
    assert (sent.kind, sent.dead_after) == (Kind.UNKNOWN, 0.05)


async def test_a_binding_that_is_open_when_its_extender_goes_has_its_answer() -> None:
    """A reload may take it away; connections end afterwards."""
    world = World()
    async with extending({}) as server:

        async def late(_: Any) -> dict[str, Any]:
            await server.let_go.wait()
            return {}

        server.verbs["bind"] = late
        old = extender(server, "bind")
        world.extenders = [old]
        questions = world.questions()
        binding = asyncio.create_task(questions.bind(old, info("p"), "n"))
        await server.was_asked("bind")
        world.extenders = []
        questions.follow()
        assert [each.closed for each in questions._retired] == [False]
        server.let_go.set()
        assert await binding == Bound()
        assert [each.closed for each in questions._retired] == [True]
        await questions.close()
