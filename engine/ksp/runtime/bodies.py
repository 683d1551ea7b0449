"""The JSON of pods and nodes, as the API server wrote it, for extenders.

It comes from the informers' stores, where it is kept while some extender may be sent it (`ksp.kube.watch.raw`). Who was
in a store before that began, since a reload brought the first extender, is listed once: of pods those that wait for a
node, unless an extender may be sent others, too. Objects that are gone by now have no JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, Protocol

from ksp.kube.http.reader import Reader
from ksp.kube.watch.indexer import Lister
from ksp.kube.watch.objects import Readable, read_object
from ksp.kube.watch.pages import read_pages
from ksp.kube.watch.raw import Kept, RawNode, RawPod, has_bytes
from ksp.kube.watch.resources import RESOURCES, Resource
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod

PAGE: Final = 500
WAITING: Final = "spec.nodeName="
"""The field selector of pods that wait for a node."""


class Informers(Protocol):
    """The stores of pods and nodes."""

    def informer(self, kind: str) -> Any: ...


class Bodies:
    """`reader` is asked for lists of what is not there of what is to be `kept`."""

    def __init__(self, informers: Informers, reader: Reader, kept: Kept) -> None:
        pods, nodes = informers.informer("Pod"), informers.informer("Node")
        self._pods: _Known = _Known(
            pods.lister, reader, replace(RESOURCES["Pod"], with_bytes=kept.pod), lambda: "" if kept.pods else WAITING
        )
        self._nodes: _Known = _Known(nodes.lister, reader, replace(RESOURCES["Node"], with_bytes=kept.node))
        self._version = 0
        self._joined: tuple[int, Sequence[str], bytes] = -1, (), b""
        nodes.add_handler(_Changes(self._changed))

    def forget(self) -> None:
        """Something else is to be kept from now on: nothing that was listed stays."""
        self._joined = -1, (), b""
        self._pods.forget()
        self._nodes.forget()

    def _changed(self) -> None:
        self._version += 1

    async def pod(self, pod: PodInfo) -> bytes | None:
        """None if the pod is not there any more."""
        key = _key(pod)
        await self._pods.complete([key])
        return self._pods.bytes_of(key, pod.metadata.uid)

    async def pods(self, pods: Collection[PodInfo]) -> dict[str, bytes]:
        """By uid; of those that are there."""
        await self._pods.complete([_key(pod) for pod in pods])
        found = {pod.uid: self._pods.bytes_of(_key(pod), pod.metadata.uid) for pod in pods}
        return {uid: body for uid, body in found.items() if body is not None}

    async def nodes(self, names: Sequence[str]) -> bytes:
        """Those of the nodes that are there, with commas between them. For the same nodes, while none changed, they are
        put together once."""
        version, joined_names, joined = self._joined
        if version == self._version and joined_names == names:
            return joined
        await self._nodes.complete(names)
        bodies = (self._nodes.bytes_of(name) for name in names)
        joined = b",".join(body for body in bodies if body is not None)
        self._joined = self._version, names, joined
        return joined


class _Known:
    """The objects of a kind."""

    def __init__(
        self, lister: Lister[Any], reader: Reader, resource: Resource, which: Callable[[], str] = lambda: ""
    ) -> None:
        """`which` is a field selector of those that are to be listed."""
        self._lister = lister
        self._reader = reader
        self._resource = resource
        self._which = which
        self._listed: dict[str, RawPod | RawNode] = {}
        self._in_vain: dict[str, object] = {}
        self._listing = asyncio.Lock()

    def forget(self) -> None:
        self._listed, self._in_vain = {}, {}

    def bytes_of(self, key: str, uid: str = "") -> bytes | None:
        """Of the object with the key and the uid, if there is one."""
        known = self._lister.get(key)
        if known is None or (uid and known.metadata.uid != uid):
            return None
        if has_bytes(known):
            self._listed.pop(key, None)
            return known.raw
        listed = self._listed.get(key)
        return listed.raw if listed is not None and listed.metadata.uid == known.metadata.uid else None

    async def complete(self, keys: Collection[str]) -> None:
        """List the objects if of some that are there no bytes are known. One of which a list knew nothing is not looked
        for again until it is another. Raises KubeError."""
        async with self._listing:
            await self._complete(keys)

    async def _complete(self, keys: Collection[str]) -> None:
        missing = {key: known for key in keys if (known := self._lister.get(key)) is not None}
        missing = {key: known for key, known in missing.items() if self.bytes_of(key) is None}
        if all(self._in_vain.get(key) is known for key, known in missing.items()):
            return
        await self._list()
        in_vain = self._in_vain | {key: known for key, known in missing.items() if self.bytes_of(key) is None}
        self._in_vain = {key: known for key, known in in_vain.items() if self._lister.get(key) is known}

    async def _list(self) -> None:
        resource = self._resource
        fields = ",".join(filter(None, (resource.fields, self._which())))
        query = {"fieldSelector": fields} if fields else {}
        found: dict[str, RawPod | RawNode] = {}
        pages = read_pages(self._reader, resource.path_in(resource.versions[0]), query, PAGE)
        async with aclosing(pages):
            async for page in pages:
                for item in page.items:
                    made = read_object(resource, item)
                    if isinstance(made, Readable) and has_bytes(made.value):
                        found[made.key] = made.value
        self._listed = {key: value for key, value in found.items() if not has_bytes(self._lister.get(key))}


class _Changes:
    """Hears of each change of a node."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def on_add(self, obj: Node) -> None:
        self._changed()

    def on_update(self, old: Node, new: Node) -> None:
        self._changed()

    def on_delete(self, obj: Node, known_final_state: bool) -> None:
        self._changed()


def _key(pod: PodInfo | Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
