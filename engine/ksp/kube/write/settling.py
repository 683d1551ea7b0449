"""Sends a change of one object, and never leaves open whether it happened.

    send ─▶ 2xx, and the answer is what it should be    DONE
         ─▶ 400 403 404 405 413 415 422                 REFUSED: the server says that it did nothing
         ─▶ 401 429, or there was no connection         UNPROCESSED
         ─▶ 409                                         CONFLICT: the object is not as the request wants it
         ─▶ lost, late, 5xx, garbage                    UNKNOWN

`settle` goes on from the last two: it reads the object, and the caller's `verdict` says what that proves. While it
proves nothing, a request may still be under way; then the request is sent again. So it has to be one that takes effect
once at most, or does the same however often it does. The caller waits until the answer is known, however long the
server is away. Cancelling the call is the way to stop waiting.

After `MOST_SENT` requests, or when one that was sent again is refused, it only reads. Once `DEAD_AFTER` seconds have
passed since the last request without an answer, the server has given that up too (its `--request-timeout` is 60 s), and
no request can take effect any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

import msgspec

from ksp.kube.errors import ApiError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.backoff import Backoff
from ksp.kube.http.client import Client
from ksp.kube.http.forbidden import explained
from ksp.kube.timers import Timers
from ksp.kube.write.patience import Patience
from ksp.kube.write.refusals import is_gone
from ksp.model.decode import DecodeError

MOST_SENT: Final = 5
DEAD_AFTER: Final = 75.0
LONGEST_PAUSE: Final = 30.0

UNREADABLE: Final = (DecodeError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoders raise."""

S = TypeVar("S")
V = TypeVar("V")

Told = Callable[[str], None]
"""Hears why it is not known yet what happened."""


class Kind(Enum):
    """What an answer says of a request."""

    DONE = "2xx"
    REFUSED = "the server will not do it"
    CONFLICT = "the object is not as the request wants it"
    UNPROCESSED = "this request changed nothing"
    UNKNOWN = "it may have happened, or happen yet"


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of a request. `gone`: there is no such object; `unreached`: there was no connection to the server;
    `body`: the answer, if it is a good one; `dead_after`: in so many seconds it has an effect, or never."""

    kind: Kind
    message: str = ""
    gone: bool = False
    unreached: bool = False
    body: bytes = b""
    dead_after: float = DEAD_AFTER


@dataclass(frozen=True, slots=True)
class Request(Generic[S]):
    """A change of the object at `where`, sent to `path`; `timeout` is in seconds. `is_answer` knows the body of a good
    answer. `read` makes of the object's JSON what is needed to settle it, or raises what is UNREADABLE."""

    method: str
    path: str
    body: bytes
    timeout: float
    is_answer: Callable[[bytes], bool]
    where: str
    read: Callable[[bytes], S]
    content_type: str = "application/json"


class Settler:
    """Sends requests, over a client that is shared with other writes."""

    def __init__(self, client: Client, timers: Timers, patience: Patience) -> None:
        self._client = client
        self._timers = timers
        self._patience = patience

    async def send(self, request: Request[S]) -> Sent:
        """Once; but for what was certainly not processed, which the client repeats."""
        try:
            response = await self._client.request(
                request.method, request.path, body=request.body, content_type=request.content_type,
                timeout=request.timeout,
            )  # fmt: skip
        except UnreachableError as error:
            return Sent(Kind.UNPROCESSED, str(error), unreached=True)
        except OutcomeUnknownError as error:
            return Sent(Kind.UNKNOWN, str(error))
        except ApiError as error:
            return _refusal(error)
        if request.is_answer(response.body):
            return Sent(Kind.DONE, body=response.body)
        return Sent(Kind.UNKNOWN, f"the answer ({response.status}) is not what the API says")

    async def settle(
        self, request: Request[S], sent: Sent, verdict: Callable[[S | None], V | None], told: Told, *,
        resend: bool = True,
    ) -> V | Sent:  # fmt: skip
        """What became of a request with that outcome, CONFLICT or UNKNOWN: a verdict; DONE; or what was heard last, and
        it is certain that nothing happened. `verdict` is asked of the object as etcd has it (None: there is none).
        Without `resend` it only reads, at once and once the request is dead: it was somebody else's."""
        last = sent.dead_after
        backoff = self._backoff() if resend else Backoff(self._timers, initial=last, maximum=last, jitter=0.1)
        count, dead_at = 1, self._dead_at(sent)
        if sent.kind is Kind.UNKNOWN:
            told(sent.message)
        while True:
            state: S | None = await self._read(request, told)
            proved = verdict(state)
            if proved is not None:
                return proved
            enough = not resend or sent.kind in {Kind.CONFLICT, Kind.REFUSED} or count >= MOST_SENT
            if enough and self._timers.now() >= dead_at:
                return sent
            await self._timers.sleep(backoff.next())
            if not enough:
                sent = await self.send(request)
                count, dead_at = count + 1, max(dead_at, self._dead_at(sent))
                if sent.kind is Kind.DONE:
                    return sent
                told(sent.message)

    def _dead_at(self, sent: Sent) -> float:
        """When that request, just sent, can have no effect any more."""
        return self._timers.now() + (sent.dead_after if sent.kind is Kind.UNKNOWN else 0.0)

    async def _read(self, request: Request[S], told: Told) -> S | None:
        """The object as etcd has it now; None if there is none. Waits as long as it takes."""
        backoff = self._backoff()
        while True:
            pause = 0.0
            try:
                response = await self._client.request("GET", request.where, timeout=self._patience.read, retry=False)
                return request.read(response.body)
            except ApiError as error:
                if is_gone(error):
                    return None
                why, pause = explained(error), min(error.retry_after or 0.0, LONGEST_PAUSE)
            except (UnreachableError, OutcomeUnknownError) as error:
                why = str(error)
            except UNREADABLE as error:
                why = f"the answer is not the object: {error}"
            told(why)
            await self._timers.sleep(max(backoff.next(), pause))

    def _backoff(self) -> Backoff:
        """Short enough that a request is settled soon after the server's return."""
        return Backoff(self._timers, initial=0.25, maximum=2.0)


def _refusal(error: ApiError) -> Sent:
    match error.status:
        case 409:
            return Sent(Kind.CONFLICT, error.message)
        case 404 if is_gone(error):
            return Sent(Kind.REFUSED, error.message, gone=True)
        case 400 | 403 | 405 | 413 | 415 | 422:
            return Sent(Kind.REFUSED, explained(error))
        case status if status in {401, 429} or status < 400:
            return Sent(Kind.UNPROCESSED, str(error))
        case _:
            return Sent(Kind.UNKNOWN, str(error))
