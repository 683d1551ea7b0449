"""Puts the core's questions to extenders, and has them bind.

Several questions of one Ask are put at the same time. Whatever goes wrong is an answer (`Failed`), so that a decision
is never left open. Connections belong to the extenders of the generation that decides: those of others are given up
once nobody waits for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, assert_never

from ksp.core.questions import (
    Answer,
    Ask,
    Failed,
    Filter,
    FilterAnswer,
    Priorities,
    Prioritize,
    ProcessPreemption,
    Question,
    Victims,
    VictimUids,
)
from ksp.kube.errors import KubeError
from ksp.kube.extenders import Asked, ExtenderClient, ExtenderError, NodeBodies, Outcome, VictimBodies
from ksp.kube.extenders.trust import caution_of
from ksp.kube.timers import Timers
from ksp.kube.watch.raw import Kept
from ksp.kube.write.settling import DEAD_AFTER, Kind, Sent
from ksp.kube.write.writes import Bound, NotBound, Send
from ksp.model.info import PodInfo
from ksp.policy.extender import Extender
from ksp.runtime.bodies import Bodies
from ksp.runtime.log import entry

_log = logging.getLogger(__name__)

GONE: Final = "the pod is not there any more"
NOT_LISTED: Final = "cannot list what extenders are to be sent"
KINDS: Final[Mapping[Outcome, Kind]] = {
    "error": Kind.REFUSED, "unreachable": Kind.UNPROCESSED, "status": Kind.CONFLICT, "malformed": Kind.UNKNOWN,
    "timeout": Kind.UNKNOWN, "lost": Kind.UNKNOWN,
}  # fmt: skip
"""What a binding that an extender failed to do comes to: it says that it did nothing; it was not asked; one look at the
pod is enough; or it is to be found out."""


class BindSettler(Protocol):
    """Has a pod bound by somebody else, and settles what came of it."""

    async def bind(self, pod: PodInfo, node: str, send: Send | None = None) -> Bound | NotBound: ...


class Questions:
    """`extenders` gives those of the generation that decides; `follow` is called when it may be another. `kept` is told
    of them, so that what they are sent is kept. What became of their bindings the `writer` finds out. With a `fence`
    nobody is asked to bind while that is not true."""

    def __init__(
        self, extenders: Callable[[], Iterable[Extender]], bodies: Bodies, kept: Kept, writer: BindSettler,
        timers: Timers, environ: Mapping[str, str], asked: Asked, fence: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        self._extenders = extenders
        self._writer = writer
        self._bodies = bodies
        self._kept = kept
        self._timers = timers
        self._environ = environ
        self._asked = asked
        self._fence = fence
        self._clients: dict[Extender, ExtenderClient] = {}
        self._retired: list[ExtenderClient] = []

    async def answers(self, ask: Ask) -> tuple[Answer, ...]:
        """One for each question, in order."""
        try:
            pod = await self._bodies.pod(ask.pod)
        except KubeError as error:
            return ask.failed(f"{NOT_LISTED}: {error}")
        if pod is None:
            return ask.failed(GONE)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._answer(pod, question)) for question in ask.questions]
        except BaseExceptionGroup as faults:
            raise faults.exceptions[0] from None
        return tuple(task.result() for task in tasks)

    async def bind(self, extender: Extender, pod: PodInfo, node: str) -> Bound | NotBound:
        """Have the extender bind the pod; returns when it is certain whether it is there."""
        return await self._writer.bind(pod, node, partial(self._send, extender))

    async def _send(self, extender: Extender, pod: PodInfo, node: str) -> Sent:
        if self._fence is not None and not self._fence():
            return Sent(Kind.UNPROCESSED, "this scheduler does not lead any more")
        try:
            await self._client(extender).bind(pod.name, pod.namespace, pod.metadata.uid, node)
        except ExtenderError as error:
            return Sent(KINDS[error.outcome], str(error), dead_after=min(extender.timeout, DEAD_AFTER))
        return Sent(Kind.DONE)

    async def close(self) -> None:
        """Ends all connections. Nobody is asked any more."""
        for client in (*self._retired, *self._clients.values()):
            await client.close()

    # ---- one question

    async def _answer(self, pod: bytes, question: Question) -> Answer:
        client = self._client(question.extender)
        try:
            match question:
                case Filter():
                    found = await client.filter(pod, await self._nodes(question))
                    return FilterAnswer(found.names, found.failed, found.unresolvable)
                case Prioritize():
                    return Priorities(await client.prioritize(pod, await self._nodes(question)))
                case ProcessPreemption():
                    removals = await client.preempt(pod, await self._victims(question))
                    return Victims({name: VictimUids(each.uids, each.violations) for name, each in removals.items()})
                case _:
                    assert_never(question)
        except ExtenderError as error:
            return Failed(str(error))
        except KubeError as error:
            return Failed(f"{NOT_LISTED}: {error}")

    async def _nodes(self, question: Filter | Prioritize) -> NodeBodies:
        if question.extender.node_cache_capable:
            return NodeBodies(question.nodes)
        return NodeBodies(question.nodes, await self._bodies.nodes(question.nodes))

    async def _victims(self, question: ProcessPreemption) -> dict[str, VictimBodies]:
        bodies: dict[str, bytes] = {}
        if not question.extender.node_cache_capable:
            bodies = await self._bodies.pods([pod for each in question.victims.values() for pod in each.pods])
        return {
            name: VictimBodies(
                [pod.uid for pod in each.pods],
                each.violations,
                [bodies[pod.uid] for pod in each.pods if pod.uid in bodies],
            )
            for name, each in question.victims.items()
        }

    # ---- connections

    def _client(self, extender: Extender) -> ExtenderClient:
        client = self._clients.get(extender)
        if client is None:
            client = self._clients[extender] = ExtenderClient(extender, self._timers, self._environ, self._asked)
            caution = caution_of(extender)
            if caution:
                _log.warning(entry("extender", url=extender.name, note=caution))
        return client

    def follow(self) -> None:
        """Those that are not asked by this generation any more are given up, and what was kept for them."""
        now = set(self._extenders())
        before = replace(self._kept)
        self._kept.use(now)
        if self._kept != before:
            self._bodies.forget()
        for extender in [each for each in self._clients if each not in now]:
            client = self._clients.pop(extender)
            client.retire()
            self._retired = [each for each in self._retired if not each.closed]
            self._retired.append(client)
