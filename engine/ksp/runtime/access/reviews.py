"""What the API server says of tokens (TokenReview) and of rights (SubjectAccessReview), remembered for a while."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

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


class _New:
    """Nothing is known."""


_NEW: Final = _New()


class TokenReviews:
    """Who a bearer token stands for. Tokens are not kept, only what they hash to."""

    def __init__(self, client: Client, settings: Authentication, timers: Timers) -> None:
        self._client = client
        self._turns = asyncio.Semaphore(AT_A_TIME)
        self._known: TLRUCache[bytes, Identity | None] = TLRUCache(
            REMEMBERED, ttu=lambda _key, _value, now: now + settings.token_cache_ttl, timer=timers.now
        )

    async def identity(self, token: str) -> Identity | None:
        """None if the server does not know it. Raises KubeError."""
        key = hashlib.sha256(token.encode()).digest()
        async with self._turns:
            known = self._known.get(key, _NEW)
            if not isinstance(known, _New):
                return known
            self._known[key] = found = await self._asked(token)
            return found

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
        self._turns = asyncio.Semaphore(AT_A_TIME)
        ttl = {True: settings.authorized_ttl, False: settings.unauthorized_ttl}
        self._known: TLRUCache[tuple[Identity, str, str], bool] = TLRUCache(
            REMEMBERED, ttu=lambda _key, allowed, now: now + ttl[allowed], timer=timers.now
        )

    async def allows(self, who: Identity, verb: str, path: str) -> bool:
        """Raises KubeError."""
        key = (who, verb, path)
        async with self._turns:
            known = self._known.get(key)
            if known is not None:
                return known
            self._known[key] = found = await self._asked(who, verb, path)
            return found

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


T = TypeVar("T")


async def _review(client: Client, path: str, body: Mapping[str, object], kind: type[T]) -> T:
    answer = await client.request("POST", path, body=msgspec.json.encode(body), timeout=TIMEOUT, retry=False)
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"the answer is no review: {error}") from error
