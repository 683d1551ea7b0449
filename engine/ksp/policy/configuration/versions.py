"""The versions of kubescheduler.config.k8s.io, and the fields that each has.

Of a version that several releases have, the fields are those that any of them has.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Final

from ksp.policy.extender_fields import EXTENDER
from ksp.policy.field_errors import Steps
from ksp.policy.shapes import (
    ANYTHING,
    BOOL,
    DURATION,
    FLOAT32,
    INT32,
    INT64,
    STRING,
    ListOf,
    Object,
    Shape,
    field_paths,
)

GROUP: Final = "kubescheduler.config.k8s.io"
KIND: Final = "KubeSchedulerConfiguration"
MULTI_POINT: Final = "multiPoint"


class Version(Enum):
    """A version of the configuration, oldest first. The value is its name."""

    V1BETA1 = "v1beta1"
    V1BETA2 = "v1beta2"
    V1BETA3 = "v1beta3"
    V1 = "v1"

    @property
    def api_version(self) -> str:
        return f"{GROUP}/{self.value}"

    def is_from(self, other: Version) -> bool:
        """Whether it is that version, or a later one."""
        order = list(Version)
        return order.index(self) >= order.index(other)


# The points at which plugins of a profile are asked, and, from v1 on, those that take part in scheduling of groups,
# which ksp does not do.
POINTS: Final = (
    "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind",
    "postBind",
)  # fmt: skip
GROUP_POINTS: Final = ("placementGenerate", "placementScore", "podGroupPostFilter")


def points_of(version: Version) -> tuple[str, ...]:
    """The extension points that a profile of the version can name, multiPoint aside."""
    points: tuple[str, ...] = POINTS
    if version.is_from(Version.V1BETA2):
        points = ("preEnqueue", *points)
    return (*points, *GROUP_POINTS) if version is Version.V1 else points


PLUGIN: Final = Object({"name": STRING, "weight": INT32})
PLUGIN_SET: Final = Object({"enabled": ListOf(PLUGIN), "disabled": ListOf(PLUGIN)})

LEADER_ELECTION: Final = Object({
    "leaderElect": BOOL, "leaseDuration": DURATION, "renewDeadline": DURATION, "retryPeriod": DURATION,
    "resourceLock": STRING, "resourceName": STRING, "resourceNamespace": STRING,
})  # fmt: skip
CLIENT_CONNECTION: Final = Object({
    "kubeconfig": STRING, "acceptContentTypes": STRING, "contentType": STRING, "qps": FLOAT32, "burst": INT32,
})  # fmt: skip


def shape_of(version: Version) -> Object:
    """The fields of a KubeSchedulerConfiguration. Arguments of plugins are decoded later."""
    fields: dict[str, Shape] = {
        "apiVersion": STRING, "kind": STRING, "parallelism": INT32, "leaderElection": LEADER_ELECTION,
        "clientConnection": CLIENT_CONNECTION, "enableProfiling": BOOL, "enableContentionProfiling": BOOL,
        "percentageOfNodesToScore": INT32, "podInitialBackoffSeconds": INT64, "podMaxBackoffSeconds": INT64,
        "profiles": ListOf(_profile(version)), "extenders": ListOf(EXTENDER),
    }  # fmt: skip
    if not version.is_from(Version.V1BETA3):
        fields |= {"healthzBindAddress": STRING, "metricsBindAddress": STRING}
    if version is Version.V1:
        fields["delayCacheUntilActive"] = BOOL
    return Object(fields)


def versions_with(steps: Steps) -> list[Version]:
    """The versions that have the field at that place, arguments of plugins aside."""
    path = "".join("[]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    return [version for version in Version if path in _paths(version)]


@cache
def _paths(version: Version) -> frozenset[str]:
    return frozenset(field_paths(shape_of(version)))


def _profile(version: Version) -> Object:
    points: dict[str, Shape] = dict.fromkeys(points_of(version), PLUGIN_SET)
    if version.is_from(Version.V1BETA3):
        points[MULTI_POINT] = PLUGIN_SET
    fields: dict[str, Shape] = {
        "schedulerName": STRING,
        "plugins": Object(points),
        "pluginConfig": ListOf(Object({"name": STRING, "args": ANYTHING})),
    }
    if version is Version.V1:
        fields["percentageOfNodesToScore"] = INT32
    return Object(fields)
