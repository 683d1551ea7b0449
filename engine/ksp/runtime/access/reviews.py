"""What the API server says of tokens (TokenReview) and of rights (SubjectAccessReview), remembered for a while."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import msgspec
from cachetools import TLRUCache

from ksp.kube.http.client import Client
from ksp.kube.http.reader import MalformedError
from ksp.kube.timers import Timers
from ksp.runtime.serving_options import Authentication, Authorization

REMEMBERED: Final = 1000
"""Answers of each kind."""
TIMEOUT: Final = 10.0
AT_A_TIME: Final = 16
"""Questions under way; more wait."""

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_RIGHTS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())


class _UserInfo(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _UserInfo | None = None


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


class _Remembered(Generic[K, V]):
    """Answers, each for a while. What is remembered is told at once, also while questions wait for a slow server."""

    def __init__(self, seconds: Callable[[V], float], timers: Timers) -> None:
        """`seconds` is for how long an answer is remembered."""
        self._turns = asyncio.Semaphore(AT_A_TIME)
        self._known: TLRUCache[K, tuple[V]] = TLRUCache(
            REMEMBERED, ttu=lambda _key, answer, now: now + seconds(answer[0]), timer=timers.now
        )

    async def answer(self, question: K, ask: Callable[[], Awaitable[V]]) -> V:
        """A failure is not remembered."""
        found = self._known.get(question)
        if found is None:
            async with self._turns:
                found = self._known.get(question)  # whoever had the turn before may have asked the same
                if found is None:
                    self._known[question] = found = (await ask(),)
        return found[0]


class TokenReviews:
    """Who a bearer token stands for. Tokens are not kept, only what they hash to."""

    def __init__(self, client: Client, settings: Authentication, timers: Timers) -> None:
        self._client = client
        self._known: _Remembered[bytes, Identity | None] = _Remembered(lambda _: settings.token_cache_ttl, timers)

    async def identity(self, token: str) -> Identity | None:
        """None if the server does not know it. Raises KubeError."""
        return await self._known.answer(hashlib.sha256(token.encode()).digest(), lambda: self._asked(token))

    async def _asked(self, token: str) -> Identity | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await _review(self._client, _TOKENS, body, _TokenReview)).status
        if not status.authenticated or status.user is None:
            return None
        user = status.user
        extra = tuple(sorted((user.extra or {}).items()))
        return Identity(user.username, user.groups or (), user.uid, extra)


class AccessReviews:
    """What somebody may do with a path that is no resource."""

    def __init__(self, client: Client, settings: Authorization, timers: Timers) -> None:
        self._client = client
        ttl = {True: settings.authorized_ttl, False: settings.unauthorized_ttl}
        self._known: _Remembered[tuple[Identity, str, str], bool] = _Remembered(ttl.__getitem__, timers)

    async def allows(self, who: Identity, verb: str, path: str) -> bool:
        """Raises KubeError."""
        return await self._known.answer((who, verb, path), lambda: self._asked(who, verb, path))

    async def _asked(self, who: Identity, verb: str, path: str) -> bool:
        spec: dict[str, object] = {
            "nonResourceAttributes": {"path": path, "verb": verb},
            "user": who.name,
            "groups": who.groups,
        }
        if who.uid:
            spec["uid"] = who.uid
        if who.extra:
            spec["extra"] = dict(who.extra)
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = (await _review(self._client, _RIGHTS, body, _AccessReview)).status
        return status.allowed and not status.denied


async def _review(client: Client, path: str, body: Mapping[str, object], kind: type[T]) -> T:
    answer = await client.request("POST", path, body=msgspec.json.encode(body), timeout=TIMEOUT, retry=False)
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"the answer is no review: {error}") from error
