"""The lines of an answer that does not end: a watch.

Silence is noticed by a task of the stream's own, which closes the connection: a connection whose other end is gone says
nothing, and never fails by itself. Only time spent waiting for the server counts, not what the reader does with a line.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque

import aiohttp

from ksp.kube.errors import KubeError, OutcomeUnknownError
from ksp.kube.http.connection import meaning
from ksp.kube.http.lines import LineSplitter
from ksp.kube.timers import Timers


class LineStream:
    """An async iterator over lines (bytes, no newline, never empty), and the guard of its silence.

    The end of the iteration is the clean end of the stream. OutcomeUnknownError: see `Client.stream`. It stays failed.
    """

    def __init__(self, response: aiohttp.ClientResponse, server: str, inactivity: float, timers: Timers) -> None:
        """`inactivity` in seconds. A task is started: `close` ends it."""
        self._response = response
        self._server = server
        self._inactivity = inactivity
        self._timers = timers
        self._splitter = LineSplitter()
        self._lines: deque[bytes] = deque()
        self._waiting_since: float | None = None
        self._silent = False
        self._ended = False
        self._guard = asyncio.create_task(self._end_silence())

    def __aiter__(self) -> LineStream:
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            if self._ended:
                raise StopAsyncIteration
            await self._fill()
        return self._lines.popleft()

    async def close(self) -> None:
        """Ends the guard. The answer itself belongs to who opened it."""
        self._guard.cancel()
        await asyncio.wait([self._guard])
        if not self._guard.cancelled():
            self._guard.result()  # a fault in it must not pass unseen

    async def _fill(self) -> None:
        """Waits for the next chunk and takes it apart."""
        chunk = await self._read()
        if chunk:
            self._lines.extend(self._splitter.feed(chunk))
            return
        self._ended = True
        rest = self._splitter.rest()
        if rest.strip():
            self._lines.append(_whole(rest, self._server))

    async def _read(self) -> bytes:
        self._waiting_since = self._timers.now()
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(error) from error
        finally:
            self._waiting_since = None

    def _failure(self, error: Exception) -> KubeError:
        if self._silent:
            return OutcomeUnknownError(f"{self._server}: nothing came for {self._inactivity:g} seconds", timed_out=True)
        return meaning(error, self._server)

    async def _end_silence(self) -> None:
        """Closes the connection once a read has waited for `inactivity` seconds."""
        left = self._inactivity
        while left > 0:
            await self._timers.sleep(left)
            now = self._timers.now()
            since = self._waiting_since
            left = self._inactivity - (now - (now if since is None else since))
        self._silent = True
        self._response.close()


def _whole(rest: bytes, server: str) -> bytes:
    """What follows the last newline, if it is whole JSON: a proxy may drop the newline, but a cut leaves a part."""
    try:
        json.loads(rest)
    except ValueError as error:
        raise OutcomeUnknownError(f"{server}: the stream ends in the middle of a line") from error
    return rest
