"""What the API server serves: which versions of which groups, and which resources in them.

Servers from 1.19 to today differ: budgets in policy/v1 or v1beta1, events in events.k8s.io or in the core only. So
nothing is assumed, and what is missing is looked for again. "Not served" is only what the server says itself: a path
that is unknown (404, as text or as a Status) or that is not in its lists. A refusal or a server that does not answer
is a failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from ksp.kube.errors import ApiError, KubeError
from ksp.kube.http.reader import MalformedError, Reader
from ksp.kube.watch.resources import RESOURCES, GroupVersion, Resource

_T = TypeVar("_T")

# What others than reflectors ask for.
_OTHERS: Final = (
    GroupVersion("events.k8s.io", "v1"),
    GroupVersion("events.k8s.io", "v1beta1"),
    GroupVersion("coordination.k8s.io", "v1"),
)

# All versions that ksp has a use for.
WANTED: Final = (*dict.fromkeys(version for row in RESOURCES.values() for version in row.versions), *_OTHERS)

# What a reflector needs of a resource.
_NEEDED_VERBS: Final = frozenset({"list", "watch"})

# Seconds for each of the small requests.
_TIMEOUT: Final = 10.0


class _Versions(msgspec.Struct):
    """The answer of /api."""

    versions: list[str] | None = None


class _GroupVersionName(msgspec.Struct, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct):
    versions: list[_GroupVersionName] | None = None


class _Groups(msgspec.Struct):
    """The answer of /apis."""

    groups: list[_Group] | None = None


class _ResourceEntry(msgspec.Struct):
    name: str = ""
    verbs: list[str] | None = None


class _ResourceList(msgspec.Struct):
    """The answer of /api/v1 and /apis/GROUP/VERSION."""

    resources: list[_ResourceEntry] | None = None


_VERSIONS: Final = msgspec.json.Decoder(_Versions)
_GROUPS: Final = msgspec.json.Decoder(_Groups)
_RESOURCES: Final = msgspec.json.Decoder(_ResourceList)

# Verbs by version and name of a resource.
_Served = dict[tuple[GroupVersion, str], frozenset[str]]


class Discovery:
    """What the server serves, as of the last `refresh` that succeeded; nothing before."""

    def __init__(self, reader: Reader, wanted: Iterable[GroupVersion] = WANTED) -> None:
        """`history` counts how often the server was found with another history than before."""
        self.history = 0
        self._reader = reader
        self._wanted = (*wanted,)
        self._served: _Served = {}
        self._fresh = False
        self._lock = asyncio.Lock()
        self._attempts = 0
        self._failure: KubeError | None = None
        self._reconnected = asyncio.Event()

    @property
    def known(self) -> bool:
        """Whether the server has been asked, and nothing has been heard since that shows the answer to be old."""
        return self._fresh

    def serves(self, group: str, version: str, resource: str) -> bool:
        """Whether the resource (a plural, or `pods/eviction`) is served in that version. The core's group is empty."""
        return (GroupVersion(group, version), resource) in self._served

    def resolve(self, resource: Resource) -> GroupVersion | None:
        """The best version in which the server lets one list and watch the resource."""
        for version in resource.versions:
            if self._served.get((version, resource.plural), frozenset()) >= _NEEDED_VERBS:
                return version
        return None

    async def refresh(self) -> None:
        """Asks the server. Who calls while another one asks gets that answer, or that failure. Raises KubeError."""
        attempts = self._attempts
        async with self._lock:
            if self._attempts == attempts:
                await self._ask()
            elif self._failure is not None:
                raise self._failure

    def expire(self) -> None:
        """Something that was served is not there any more: reflectors ask again before they go on."""
        self._fresh = False

    def reconnected(self) -> None:
        """The server was gone and is back, perhaps as another version: who waits for a kind may look again."""
        self._reconnected.set()
        self._reconnected = asyncio.Event()

    def went_back(self) -> None:
        """The server's history is another one, as after a restore: what anybody knows of it may be wrong."""
        self.history += 1

    async def reconnection(self) -> None:
        """Returns at the next `reconnected`."""
        await self._reconnected.wait()

    async def _ask(self) -> None:
        """One attempt; a cancelled one answers nobody and does not count."""
        try:
            self._served = await self._discover()
        except KubeError as error:
            self._failure = error
            self._attempts += 1
            raise
        self._failure = None
        self._fresh = True
        self._attempts += 1

    async def _discover(self) -> _Served:
        names = await self._group_versions()
        served: _Served = {}
        for version in self._wanted:
            if str(version) not in names:
                continue
            listed = await self._get(version.prefix, _RESOURCES)
            for entry in (listed and listed.resources) or ():
                served[version, entry.name] = frozenset(entry.verbs or ())
        return served

    async def _group_versions(self) -> frozenset[str]:
        core = await self._get("/api", _VERSIONS)
        versions = (core and core.versions) or ()
        if "v1" not in versions:
            raise MalformedError("the server has no v1 under /api, so it is no Kubernetes API server")
        groups = await self._get("/apis", _GROUPS)
        named = (name.group_version for group in (groups and groups.groups) or () for name in group.versions or ())
        return frozenset((*versions, *named))

    async def _get(self, path: str, decoder: msgspec.json.Decoder[_T]) -> _T | None:
        """None: the server does not know the path."""
        try:
            answer = await self._reader.request("GET", path, timeout=_TIMEOUT, retry=False)
            return decoder.decode(answer.body)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise MalformedError(f"the answer to {path} is not what the API says: {error}") from error
