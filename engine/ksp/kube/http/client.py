"""The HTTP client of all of `ksp.kube`: bytes in, bytes out, to one API server.

Callers: reflectors (`stream` and pages of lists), writes, events, discovery. It adds what every request needs: fresh
credentials, a rate limit, time limits, and repeats where they can do no harm (`ksp.kube.http.retries`). It knows no
kinds.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlencode

import aiohttp

from ksp.kube.auth.cluster import Cluster
from ksp.kube.auth.credentials import Credentials, Grant
from ksp.kube.errors import ApiError, KubeError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.answers import api_error
from ksp.kube.http.connection import Connections, Headers, read_all, read_some
from ksp.kube.http.paths import checked
from ksp.kube.http.rate_limit import TokenBucket
from ksp.kube.http.retries import wait_before_repeat
from ksp.kube.http.stream import LineStream
from ksp.kube.timers import SystemTimers, Timers
from ksp.kube.wall_clock import SystemWallClock, WallClock

DEFAULT_QPS = 50.0
DEFAULT_BURST = 100
IN_FLIGHT = 256
"""Requests at the same time, watches not counted; more wait for their turn."""
ERROR_BODY = 64 * 1024
"""Bytes of an error's body that are read."""
HEADERS_TIMEOUT = 30.0
"""Seconds until a stream's status and headers have come."""

T = TypeVar("T")

Answered = Callable[[str, int | None, float], None]
"""Method, status (None: there was no answer), and the seconds until the answer's headers were there."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer with a status below 300."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Client:
    """Requests to `cluster`; an async context manager. Entering loads the credentials and raises ConfigError.

    `qps` and `burst` bound the requests sent, repeats and starts of streams included; `qps` <= 0 is no limit.
    """

    def __init__(
        self,
        cluster: Cluster,
        timers: Timers | None = None,
        *,
        qps: float = DEFAULT_QPS,
        burst: int = DEFAULT_BURST,
        clock: WallClock | None = None,
        answered: Answered | None = None,
        fence: Callable[[], float] | None = None,
    ) -> None:
        """`clock` is what expiry and Retry-After's dates are compared with; without it and `timers`, the computer's.

        `answered` is told of each request that was sent, repeats and starts of streams included. `fence` says for how
        many seconds from now requests may be sent: what cannot be sent by then is not sent, UnreachableError.
        """
        self.cluster = cluster
        self._answered = answered or _tell_nobody
        self._fence = fence or _for_ever
        self._timers = timers or SystemTimers()
        self._clock = clock or SystemWallClock()
        self._bucket = TokenBucket(qps, burst, self._timers)
        self._turns = asyncio.Semaphore(IN_FLIGHT)
        self._credentials = Credentials(
            cluster.user, cluster.trust if cluster.encrypted else None, self._timers, self._clock
        )
        self._connections: Connections | None = None
        self._retired: list[Connections] = []

    async def __aenter__(self) -> Self:
        await self._credentials.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._credentials.close()
        for connections in (*self._retired, *filter(None, [self._connections])):
            await connections.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,  # noqa: ASYNC109 - each time that it is sent has its own
        retry: bool = True,
    ) -> Response:
        """Sends a request and reads the whole answer.

        `path` is quoted (`ksp.kube.http.paths.path_of`). `timeout` is in seconds for each time that it is sent, the
        body included; waiting for the rate limit does not count. `retry` as `ksp.kube.http.retries` says, up to ten
        times.

        Raises ApiError, UnreachableError, OutcomeUnknownError. A change whose outcome is unknown is never repeated.
        """
        target = _target(path, query)
        headers: list[tuple[str, str]] = [] if body is None else [("Content-Type", content_type)]
        if not self.cluster.compression:
            headers.append(("Accept-Encoding", "identity"))
        repeats = 0
        while True:
            try:
                async with self._turns:
                    return await self._with_good_credentials(
                        lambda grant: self._answer(method, target, (*headers, *grant.headers), body, timeout, grant)
                    )
            except KubeError as failure:
                wait = wait_before_repeat(method, failure, repeats, self._timers.jitter()) if retry else None
                if wait is None:
                    raise
            await self._timers.sleep(wait)
            repeats += 1

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, inactivity: float
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Opens a watch: an iterator over the lines of the answer, as they come.

        Entering raises as `request` does, but repeats nothing (a reflector has its own backoff) but once after a 401.
        The end of the iteration is the clean end of the stream. OutcomeUnknownError in the iteration: the connection
        was lost, a line is longer than `ksp.kube.http.lines.LONGEST_LINE`, or nothing came for `inactivity` seconds.
        What follows the last newline of a stream that ends is a line if it is whole JSON, else the connection was lost.
        """
        target = _target(path, query)
        async with AsyncExitStack() as stack:
            response = await self._with_good_credentials(lambda grant: self._begun(stack, target, grant))
            lines = LineStream(response, self.cluster.server, inactivity, self._timers)
            stack.push_async_callback(lines.close)
            yield lines

    async def _with_good_credentials(self, attempt: Callable[[Grant], Awaitable[T]]) -> T:
        """`attempt`, once more with new credentials if the server refuses the first ones (and so processed nothing)."""
        grant = await self._granted()
        try:
            return await attempt(grant)
        except (ApiError, UnreachableError) as failure:
            if not _refuses_credentials(failure):
                raise
            if not await self._credentials.refused(grant):
                if self._credentials.problem is None:
                    raise
                raise _explained(failure, self._credentials.problem) from failure
        return await attempt(await self._granted())

    async def _granted(self) -> Grant:
        """Waits for the rate limit; the credentials of this moment."""
        await self._bucket.take()
        return await self._credentials.current()

    async def _answer(
        self, method: str, target: str, headers: Headers, body: bytes | None, allowed: float, grant: Grant
    ) -> Response:
        try:
            async with (
                asyncio.timeout(allowed),
                self._opened(method, target, headers, body, allowed, grant) as response,
            ):
                return Response(response.status, response.headers, await read_all(response, self.cluster.server))
        except TimeoutError as error:
            raise self._too_slow(allowed) from error

    async def _begun(self, stack: AsyncExitStack, target: str, grant: Grant) -> aiohttp.ClientResponse:
        """A stream's answer, which `stack` ends."""
        headers = (("Accept-Encoding", "identity"), *grant.headers)  # an event must not wait in a compressor
        try:
            async with asyncio.timeout(HEADERS_TIMEOUT):
                return await stack.enter_async_context(
                    self._opened("GET", target, headers, None, HEADERS_TIMEOUT, grant)
                )
        except TimeoutError as error:
            raise self._too_slow(HEADERS_TIMEOUT) from error

    @asynccontextmanager
    async def _opened(
        self, method: str, target: str, headers: Headers, body: bytes | None, allowed: float, grant: Grant
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """An answer whose status is below 300, its body not read yet; ApiError for the others."""
        left = self._fence()
        if left <= 0:
            raise UnreachableError(f"{self.cluster.server}: not sent: another scheduler may lead by now")
        connections = self._connections_for(grant)
        began = self._timers.now()
        try:
            response = await connections.open(method, target, headers, body, min(allowed, left))
        except BaseException:  # also where the time has run out
            self._answered(method, None, self._timers.now() - began)
            raise
        self._answered(method, response.status, self._timers.now() - began)
        try:
            if response.status >= 300:
                told = await read_some(response, ERROR_BODY)
                raise api_error(response.status, response.headers, told, self._clock.wall().timestamp())
            yield response
        finally:
            await connections.done(response)

    def _connections_for(self, grant: Grant) -> Connections:
        """The pool with the grant's certificates. A pool with older ones ends when its last answer has.

        Nothing is awaited between this and the use of the pool: so no other request can have it retired.
        """
        now = self._connections
        if now is not None and now.tls is grant.tls:
            return now
        self._connections = Connections(self.cluster, grant.tls)
        if now is not None:
            self._retired = [pool for pool in self._retired if not pool.closed]
            self._retired.append(now)
            now.retire()
        return self._connections

    def _too_slow(self, allowed: float) -> OutcomeUnknownError:
        return OutcomeUnknownError(f"{self.cluster.server}: no whole answer in {allowed:g} seconds", timed_out=True)


def _for_ever() -> float:
    """Where nobody else writes."""
    return math.inf


def _tell_nobody(method: str, status: int | None, seconds: float) -> None:
    """Where nobody asks."""


def _target(path: str, query: Mapping[str, str] | None) -> str:
    return f"{checked(path)}?{urlencode(query)}" if query else checked(path)


def _refuses_credentials(failure: ApiError | UnreachableError) -> bool:
    """401, or a TLS connection that failed for a certificate: the server's or ksp's may have been renewed on disk."""
    return failure.status == 401 if isinstance(failure, ApiError) else not failure.temporary


def _explained(failure: ApiError | UnreachableError, problem: str) -> KubeError:
    """`failure`, with the reason why there are no better credentials."""
    if isinstance(failure, UnreachableError):
        return UnreachableError(f"{failure}; {problem}", temporary=failure.temporary)
    return ApiError(
        failure.status, failure.reason, f"{failure.message}; {problem}", failure.details, failure.retry_after
    )
