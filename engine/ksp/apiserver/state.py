"""What all handlers of one server share, and what one request brings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ksp.apiserver.clock import Clock, RandomDice
from ksp.apiserver.http.negotiation import Form
from ksp.apiserver.http.routing import Target
from ksp.apiserver.resources import Catalogue, Resource
from ksp.apiserver.store import DryRun, Store
from ksp.apiserver.strategies import strategy_of
from ksp.apiserver.strategy import Context, Strategy, User
from ksp.apiserver.versions import Version

Json = dict[str, Any]


@dataclass(slots=True)
class State:
    """One emulated cluster."""

    version: Version
    catalogue: Catalogue
    store: Store
    clock: Clock
    dice: RandomDice
    uncached: set[str] = field(default_factory=set)
    """Kinds without a watch cache, by storage id: their lists and watches come from etcd and know its compactions."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a resource that is served, allowed and understood so far."""

    state: State
    target: Target
    resource: Resource
    user: User
    headers: Mapping[str, str]
    body: bytes
    form: Form
    warnings: list[str] = field(default_factory=list)

    @property
    def strategy(self) -> Strategy:
        return strategy_of(self.resource)

    def context(self, *, dry_run: bool = False) -> Context:
        target = self.target
        return Context(
            version=self.state.version,
            resource=self.resource,
            now=self.state.clock.now(),
            user=self.user,
            objects=DryRun(self.state.store) if dry_run else self.state.store,
            dice=self.state.dice,
            namespace=target.namespace if self.resource.namespaced else "",
            name=target.name,
            subresource=target.subresource,
            dry_run=dry_run,
            query=target.query,
            warnings=self.warnings,
        )


@dataclass(slots=True)
class Answer:
    """What is sent: an object, a list or a Status as JSON, or text that is written as it is."""

    code: int
    body: Json | bytes
    content_type: str = ""
    """Of bytes; JSON is written in the form that was asked for."""
    headers: list[tuple[str, str]] = field(default_factory=list)
