"""A whole list, in pages.

No resource version is asked for, so each list is a read at a quorum. A list with `resourceVersion=0` may be served from
any API server's cache, however old: after a restart, or after a change to another server, it can be older than what
this scheduler has seen and done, and pods that it bound would look unbound ("time travel",
kubernetes/kubernetes#59848). A quorum read costs more, and happens only at the start and when a watch cannot go on.

All pages of one list show the state at one resource version, that of the first page: the token carries it. From there
the watch goes on; the versions of items say nothing about what else has happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from ksp.kube.http.reader import MalformedError, Reader

# Seconds for one page: a server under load takes its time.
PAGE_TIMEOUT: Final = 60.0


@dataclass(frozen=True, slots=True)
class Page:
    """Some items of a list, not decoded. `token` leads to the next page; it is empty on the last."""

    items: list[msgspec.Raw]
    resource_version: str
    token: str


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str | None = None
    token: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct):
    kind: str = ""
    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


_LISTS: Final = msgspec.json.Decoder(_List)


def read_page(body: bytes) -> Page:
    """The envelope of a list. Raises MalformedError for any other text: the page of an error must not look empty."""
    try:
        found = _LISTS.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedError(f"the answer is not a list of objects: {error}") from error
    meta = found.metadata or _ListMeta()
    if not found.kind.endswith("List") or found.items is msgspec.UNSET:
        raise MalformedError(f"the answer is not a list of objects, but of kind {found.kind[:60]!r}")
    if not meta.resource_version:
        raise MalformedError("the list has no resourceVersion")
    items = found.items if isinstance(found.items, list) else []
    return Page(items, meta.resource_version, meta.token or "")


async def read_pages(reader: Reader, path: str, query: Mapping[str, str], limit: int) -> AsyncGenerator[Page, None]:
    """The pages of a list, each asked for when the one before has been used. `limit` 0 asks for all in one.

    Raises KubeError; ApiError 410 when the list has grown too old between two pages.
    """
    asked = dict(query) | ({"limit": str(limit)} if limit else {})
    token = ""
    while True:
        follow = {"continue": token} if token else {}
        # The first page fails at once, so that start-up can say why; later ones are worth another try.
        answer = await reader.request("GET", path, query=asked | follow, timeout=PAGE_TIMEOUT, retry=bool(token))
        # To put together some megabytes, to find the items in them, to decode the first: each is work for a turn.
        await asyncio.sleep(0)
        page = read_page(answer.body)
        await asyncio.sleep(0)
        yield page
        if not page.token:
            return
        if page.token == token:
            raise MalformedError("the list does not end: its continue token leads to itself")
        token = page.token
