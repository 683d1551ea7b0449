"""What property tests of writes share: servers that do what a story says, and how many stories are told."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kube.driving import driven
from tests.unit.kube.pod_server import Apply, PodServer, client_of, closes_before, serving, status
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.write.settling import DEAD_AFTER
from ksp.kube.write.writes import Writer

# A server gives up on a request after this many seconds.
REQUEST_TIMEOUT: Final = 60.0
assert REQUEST_TIMEOUT < DEAD_AFTER

ERRORS: Final = (400, 403, 404, 409, 422, 500, 503, 504)

Answer = tuple[str, int]
"""What becomes of a request, and a status code or, of one that is late, how many requests it lets pass."""
PLAIN: Final[tuple[Answer, ...]] = (("works", 0), ("lost after", 0), ("lost before", 0))
FAILED_AFTER: Final = st.tuples(st.just("failed after"), st.sampled_from([500, 503, 504]))


def refused(*codes: int) -> st.SearchStrategy[Answer]:
    return st.tuples(st.just("refused"), st.sampled_from(codes))


def late(least: int, most: int) -> st.SearchStrategy[Answer]:
    """Applied when so many more requests have come."""
    return st.tuples(st.just("late"), st.integers(least, most))


class Unsteady(PodServer, ABC):
    """Does what a script says (by method), with requests that take effect later, and others who act between requests.
    What is late longer than `lasts` has no effect."""

    lasts = REQUEST_TIMEOUT

    def __init__(self, script: Mapping[str, list[Answer]], others: list[str]) -> None:
        super().__init__()
        self.timers = VirtualTimers(jitter=0.5)
        self.script = script
        self.others = list(others)
        self.late: list[tuple[int, float, Apply]] = []  # requests to wait for, deadline, effect

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.others_act(self.others.pop(0) if self.others else "")
        self.let_late_ones_through()
        apply = self.effect(request, await request.json() if request.can_read_body else None)
        script = self.script[request.method]
        what, how = script.pop(0) if script else ("works", 0)
        match what:
            case "works":
                return apply()
            case "late":
                self.late.append((how, self.timers.now() + self.lasts, apply))
            case "refused":
                return status(how, "NotFound" if how == 404 and self.is_empty() else "Failure", "no")
            case "lost after":
                apply()
            case "failed after":
                apply()
                return status(how, "InternalError", "etcdserver: request timed out")
        return await closes_before(request, apply)

    def let_late_ones_through(self, *, all: bool = False) -> None:
        waiting, self.late = self.late, []
        for requests, deadline, apply in waiting:
            if self.timers.now() > deadline:
                continue
            if requests and not all:
                self.late.append((requests - 1, deadline, apply))
            else:
                apply()

    def is_empty(self) -> bool:
        return not self.pods

    @abstractmethod
    def others_act(self, act: str) -> None:
        """What others do before a request is looked at; "" is nothing."""


T = TypeVar("T")


async def asked(server: Unsteady, ask: Callable[[Writer], Coroutine[Any, Any, T]], *, marks_victims: bool = False) -> T:
    """What comes of a write to the server."""
    async with serving(server), client_of(server, server.timers) as client:
        return await driven(server.timers, ask(Writer(client, server.timers, marks_victims=marks_victims)))


def tell(
    stories: int,
    outcome: Callable[..., Coroutine[Any, Any, tuple[Any, ...]]],
    check: Callable[..., None],
    *parts: st.SearchStrategy[Any],
) -> None:
    """So many stories over real sockets: on one loop, since to make one costs as much as a story. `outcome` is made of
    the story's parts, and `check` looks at it."""
    with asyncio.Runner() as runner:

        @settings(max_examples=stories)
        @given(st.tuples(*parts))
        def holds(story: tuple[Any, ...]) -> None:
            check(*runner.run(outcome(*story)))

        holds()
