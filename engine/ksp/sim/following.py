"""Lists, watches and tolerant writes: what actors on a cluster have in common."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ksp.kube.errors import ApiError, KubeError
from ksp.kube.http.client import Client

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
IN_VAIN: Final = frozenset({404, 409, 422})
"""Answers to writes that would be the same again: the object is gone or has changed, or the server calls it wrong. The
watch tells when that is over."""
PAUSE: Final = 0.2
"""Seconds between the end of a watch and the next list."""

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""
React = Callable[[Json], Awaitable[None]]


class Following:
    """One for all who act with the same client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def follow(
        self, path: str, selector: str, known: dict[Key, Json], changed: React, gone: React | None = None
    ) -> None:
        """Lists and watches, and starts again when that ends, for whatever reason. `known` is kept equal to what there
        is; `changed` is told of each object that came or changed, `gone` of each that went."""
        query = {"labelSelector": selector} if selector else {}
        while True:
            try:
                version = await self._list(path, query, known, changed, gone)
                watch = query | {"watch": "true", "resourceVersion": version, "timeoutSeconds": "300"}
                async with self._client.stream(path, query=watch, inactivity=310) as lines:
                    async for line in lines:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        await _take(event["type"], event["object"], known, changed, gone)
            except KubeError:
                pass
            await asyncio.sleep(PAUSE)

    async def _list(
        self, path: str, query: dict[str, str], known: dict[Key, Json], changed: React, gone: React | None
    ) -> str:
        listed = json.loads((await self._client.request("GET", path, query=query)).body)
        before = dict(known)
        known.clear()
        known.update((key_of(item), item) for item in listed.get("items") or ())
        for key, item in before.items():
            if key not in known and gone is not None:
                await gone(item)
        for item in list(known.values()):
            await changed(item)
        version: str = listed["metadata"]["resourceVersion"]
        return version

    # ---- writes

    async def patch(self, path: str, patch: Json, how: str = MERGE) -> Json | None:
        """The object after the patch; None if it is gone, or not of the version that the patch names, or refused."""
        return await self._tolerant("PATCH", path, patch, how)

    async def create(self, path: str, found: Json) -> None:
        """Unless there is one of that name, or the server calls it wrong."""
        await self._tolerant("POST", path, found, "application/json")

    async def delete(self, path: str, uid: str) -> None:
        """At once, if it is still that object."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        await self._tolerant("DELETE", path, options, "application/json")

    async def _tolerant(self, method: str, path: str, body: Json, content_type: str) -> Json | None:
        try:
            sent = json.dumps(body).encode()
            answer = await self._client.request(method, path, body=sent, content_type=content_type)
        except ApiError as error:
            if error.status not in IN_VAIN:
                raise
            return None
        found: Json = json.loads(answer.body)
        return found


async def _take(verb: str, found: Json, known: dict[Key, Json], changed: React, gone: React | None) -> None:
    if verb != "DELETED":
        known[key_of(found)] = found
        await changed(found)
        return
    known.pop(key_of(found), None)
    if gone is not None:
        await gone(found)


def key_of(found: Json) -> Key:
    """Of any object."""
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]
