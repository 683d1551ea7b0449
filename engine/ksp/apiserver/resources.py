"""The resources of an emulated version, read from its discovery documents (`data/discovery-*.json`)."""

import importlib.resources
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """One collection under one group version."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]
    subresources: frozenset[str] = frozenset()
    """`status`, `scale`, `binding`, ... as served by the emulated version."""
    storage_id: str = ""
    """Under which the objects are stored: `pods`, `replicasets.apps`; `events` for events of both groups."""

    @property
    def group_version(self) -> str:
        """As `apiVersion` has it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def id(self) -> str:
        """`pods`, `events.events.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage_group(self) -> str:
        """Of the kind that is stored: errors of validation name it."""
        return self.storage_id.partition(".")[2]

    @property
    def prefix(self) -> str:
        """Of all its paths: `/api/v1`, `/apis/apps/v1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


SHARED_STORAGE: Final = {"events.events.k8s.io": "events", "ingresses.extensions": "ingresses.networking.k8s.io"}
"""Kinds that two groups serve, by the id of the second."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All that a version serves."""

    documents: Json
    """`version`, `groups`, `resources` (APIResource by group version), `readyz`, `paths`."""
    by_path: dict[tuple[str, str, str], Resource]
    """By group, version and plural."""
    stored: dict[str, Resource]
    """By storage id: the resource in whose version objects are stored (the preferred one)."""
    kinds: dict[tuple[str, str], Resource]
    """By apiVersion and kind."""
    subresource_verbs: dict[tuple[str, str, str, str], frozenset[str]]
    """By group, version, plural and subresource."""

    def group_versions(self, group: str) -> list[str]:
        """Versions of a group, the preferred one first; none if the group is not served."""
        return [version for row in self.documents["groups"] if row["name"] == group for version in row["versions"]]


@cache
def catalogue(version: str) -> Catalogue:
    """Of `1.19` or `1.36`."""
    text = importlib.resources.files("ksp.apiserver").joinpath("data", f"discovery-{version}.json").read_bytes()
    documents = msgspec.json.decode(text)
    found = [resource for group_version in documents["resources"] for resource in _resources(documents, group_version)]
    stored: dict[str, Resource] = {}
    for resource in found:
        if resource.storage_id == resource.id and resource.storage_id not in stored:
            stored[resource.storage_id] = resource
    return Catalogue(
        documents=documents,
        by_path={(one.group, one.version, one.plural): one for one in found},
        stored=stored,
        kinds={(one.group_version, one.kind): one for one in found},
        subresource_verbs=dict(_subresource_verbs(documents)),
    )


def _subresource_verbs(documents: Json) -> Iterator[tuple[tuple[str, str, str, str], frozenset[str]]]:
    for group_version, rows in documents["resources"].items():
        group, _, version = group_version.rpartition("/")
        for row in rows:
            plural, _, subresource = row["name"].partition("/")
            if subresource:
                yield (group, version, plural, subresource), frozenset(row["verbs"])


def _resources(documents: Json, group_version: str) -> list[Resource]:
    group, _, version = group_version.rpartition("/")
    rows: list[Json] = documents["resources"][group_version]
    return [_resource(group, version, row, rows) for row in rows if "/" not in row["name"]]


def _resource(group: str, version: str, row: Json, rows: list[Json]) -> Resource:
    plural = row["name"]
    prefix = f"{plural}/"
    id = f"{plural}.{group}" if group else plural
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=row["kind"],
        namespaced=row["namespaced"],
        verbs=frozenset(row["verbs"]),
        subresources=frozenset(one["name"].removeprefix(prefix) for one in rows if one["name"].startswith(prefix)),
        storage_id=SHARED_STORAGE.get(id, id),
    )
