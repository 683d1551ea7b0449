"""What a pod asks for, per resource: cpu in milli-units, all else in whole units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from ksp.model.int64 import wrap
from ksp.model.labels import qualified_name_error
from ksp.model.meta import ResourceList
from ksp.model.pod import Container, ContainerStatus, PodSpec, PodStatus, ResourceRequirements
from ksp.model.quantity import Quantity, QuantityError, milli_value, value

Amounts = dict[str, int]

BASIC: Final = ("cpu", "memory", "ephemeral-storage")

# What a container that does not say is taken to use, for scoring: 100m and 200Mi.
UNSTATED: Final[Mapping[str, int]] = {"cpu": 100, "memory": 200 * 1024 * 1024}
_NONE_UNSTATED: Final[Mapping[str, int]] = {}


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """`stated` counts what containers say; `nonzero` also what those use that say nothing about cpu or memory.

    Both have cpu, memory and ephemeral-storage and are sorted by resource. `error` is why a quantity could not be
    read, else ""; then the amounts are all 0.
    """

    stated: Amounts
    nonzero: Amounts
    error: str = ""


def is_basic_resource(name: str) -> bool:
    return name in BASIC


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """A resource that is not Kubernetes' own, such as example.com/gpu."""
    return (
        "/" in name
        and "kubernetes.io/" not in name
        and not name.startswith("requests.")
        and not qualified_name_error(f"requests.{name}")
    )


@lru_cache(maxsize=4096)
def is_counted_resource(name: str) -> bool:
    """Whether scheduling keeps account of the resource; of others it takes no notice."""
    return (
        name in BASIC
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
        or is_extended_resource(name)
    )


def amount(name: str, quantity: str | float) -> int:
    """A quantity of the resource in its base unit. Raises QuantityError."""
    return milli_value(quantity) if name == "cpu" else value(quantity)


def amounts(path: str, resources: ResourceList) -> Amounts:
    """The resource list in base units. Raises QuantityError with the path of what is wrong."""
    found: Amounts = {}
    for name, quantity in resources.items():
        try:
            found[name] = amount(name, quantity)
        except QuantityError as error:
            raise QuantityError(error.text, f"{path}[{name}]") from error
    return found


_MOST_KNOWN: Final = 4096  # results that are kept
_MOST_ENTRIES: Final = 32  # that a pod's containers may state together for its result to be kept

# Of each container the entries of its requests: all that most pods state.
_Stated = tuple[tuple[tuple[str, Quantity], ...], ...]


def requests_of(spec: PodSpec, status: PodStatus = PodStatus()) -> Requests:  # noqa: B008 - a frozen value
    """What the pod asks for. A container that is being resized counts as the larger of what it asks for and has.

    Pods that ask for the same share the result, whose maps are not to be changed.
    """
    if (
        spec.init_containers
        or spec.overhead
        or spec.resources is not None
        or any([c.resources is not None for c in status.container_statuses])  # noqa: C419 - cheaper than a generator
    ):
        return _counted(spec, status)
    stated = tuple([tuple(container.resources.requests.items()) for container in spec.containers])
    return _counted(spec, status) if sum(map(len, stated)) > _MOST_ENTRIES else _of_containers(stated)


@lru_cache(maxsize=_MOST_KNOWN)
def _of_containers(stated: _Stated) -> Requests:
    containers = tuple(Container(resources=ResourceRequirements(requests=dict(entries))) for entries in stated)
    return _counted(PodSpec(containers=containers), PodStatus())


def _counted(spec: PodSpec, status: PodStatus) -> Requests:
    try:
        pod = _Parsed.of(spec, status)
    except QuantityError as error:
        nothing = _with_basic({})
        return Requests(stated=nothing, nonzero=nothing, error=str(error))
    stated = pod.total(_NONE_UNSTATED)
    nonzero = pod.total({name: n for name, n in UNSTATED.items() if not pod.level or stated.get(name, 0) == 0})
    return Requests(stated=_with_basic(stated), nonzero=_with_basic(nonzero))


class _Parsed(msgspec.Struct, frozen=True):
    """The resource lists of a pod as numbers; `init` has each list with whether it is a sidecar's."""

    containers: list[Amounts]
    init: list[tuple[Amounts, bool]]
    level: Amounts
    overhead: Amounts

    @staticmethod
    def of(spec: PodSpec, status: PodStatus) -> _Parsed:
        had = _Had.of("containerStatuses", status.container_statuses, status)
        sidecars_had = _Had.of("initContainerStatuses", status.init_container_statuses, status)
        init = zip(_lists("initContainers", spec.init_containers), spec.init_containers, strict=True)
        level = amounts("spec.resources.requests", spec.resources.requests) if spec.resources else {}
        return _Parsed(
            [
                had.counted(container.name, asked)
                for asked, container in zip(_lists("containers", spec.containers), spec.containers, strict=True)
            ],
            [
                (sidecars_had.counted(container.name, asked), True)
                if container.restart_policy == "Always"
                else (asked, False)
                for asked, container in init
            ],
            {name: n for name, n in level.items() if name in ("cpu", "memory") or name.startswith("hugepages-")},
            amounts("spec.overhead", spec.overhead),
        )

    def total(self, unstated: Mapping[str, int]) -> Amounts:
        """What the pod needs at its busiest: containers run together, init containers one after another.

        A sidecar starts among the init containers and keeps running. What the pod states as a whole replaces the
        sum over its containers.
        """
        total: Amounts = {}
        for asked in self.containers:
            _add(total, asked, unstated)
        running: Amounts = {}
        starting: Amounts = {}
        for asked, sidecar in self.init:
            if sidecar:
                _add(total, asked, unstated)
                _add(running, asked, unstated)
            else:
                needed = dict(running)
                _add(needed, asked, unstated)
                _raise_to(starting, needed)
        _raise_to(total, starting)
        total.update(self.level)
        _add(total, self.overhead, _NONE_UNSTATED)
        return total


class _Had(msgspec.Struct, frozen=True):
    """What containers were given, by name, as their statuses say; none whose status names no resources. `only` if a
    resize was found infeasible: then what is asked for does not count. So kube-scheduler counts since 1.33."""

    given: dict[str, Amounts]
    only: bool

    @staticmethod
    def of(kind: str, statuses: tuple[ContainerStatus, ...], status: PodStatus) -> _Had:
        given: dict[str, Amounts] = {}
        for i, container in enumerate(statuses):
            if container.resources is not None:
                path = f"status.{kind}[{i}]"
                has = amounts(f"{path}.resources.requests", container.resources.requests)
                _raise_to(has, amounts(f"{path}.allocatedResources", container.allocated_resources))
                given[container.name] = has
        only = bool(given) and any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in status.conditions)
        return _Had(given, only)

    def counted(self, name: str, asked: Amounts) -> Amounts:
        """What the container counts for."""
        has = self.given.get(name)
        if has is None:
            return asked
        if not self.only:
            has = dict(has)
            _raise_to(has, asked)
            for resource in asked:
                has.setdefault(resource, 0)
        return has


def _lists(kind: str, containers: Iterable[Container]) -> Iterable[Amounts]:
    for i, container in enumerate(containers):
        yield amounts(f"spec.{kind}[{i}].resources.requests", container.resources.requests)


def _add(total: Amounts, asked: Amounts, unstated: Mapping[str, int]) -> None:
    for name, n in asked.items():
        if is_counted_resource(name):
            total[name] = wrap(total.get(name, 0) + n)
    for name, n in unstated.items():
        if name not in asked:
            total[name] = wrap(total.get(name, 0) + n)


def _raise_to(total: Amounts, needed: Amounts) -> None:
    """Take the larger of both. What needs 0 of a resource leaves no trace of it."""
    for name, n in needed.items():
        if n > total.get(name, 0):
            total[name] = n


def _with_basic(found: Amounts) -> Amounts:
    complete = dict.fromkeys(BASIC, 0) | found
    return dict(sorted(complete.items()))
