"""Does a pod fit on a node? Asked again and again, while pods are taken off nodes and put back.

    fits = Fits(profile, tables, pod)
    with WhatIf(state, fits) as trial:
        trial.remove(uid)
        fits(node)                 None, or the rule that refuses the node and why

What a rule makes of the pod is made once, and it is bound to views once. It is bound again only if a view from which it
was made has changed. A rule that reads no view reads the sums of the node under test as they are, and costs nothing but
the question itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ksp.compile.table import Table
from ksp.compile.tables import Tables, encoded
from ksp.core.filter import Check, Refused, judge, judge_by_all
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.profile import ActivePredicate, Profile


class Fits:
    """A pod's predicates, in a state in which nothing changes but pods that come to nodes and leave them: good for one
    attempt. `rules` are those of the profile, in order; `before` is what the first of them says that decides for all
    nodes, in a `prefilter`; `checks` are what those say of a node that can refuse one, which `judge` puts together."""

    def __init__(self, profile: Profile, tables: Tables, pod: PodInfo) -> None:
        self.tables = tables
        self.pod = pod
        self.judge = judge_by_all if profile.checks_all else judge
        self.rules: Sequence[BoundRule] = [BoundRule(active, pod, tables) for active in profile.predicates]
        self._terms = tables.terms_generation
        self._generation = tables.state.generation
        self._following: list[BoundRule] = []
        self.checks: list[Check] = []
        self.before: Refused | None = None
        self._arrange()

    def __call__(self, node: NodeInfo) -> Refused | None:
        """The first rule that refuses the node as it is now, be it in a `prefilter`."""
        self.follow()
        return self.before or self.judge(self.checks, node)

    def judged(self, node: NodeInfo) -> Refused | None:
        """As if no `prefilter` said anything."""
        self.follow()
        return self.judge(self.checks, node)

    def kind(self) -> Hashable:
        """Equal where the rules say the same of equal nodes with equal sums."""
        return tuple(rule.kind() for rule in self.rules)

    def follow(self) -> None:
        """Bring the rules up to date."""
        generation = self.tables.state.generation
        if generation == self._generation:
            return
        terms = self.tables.terms_generation
        if terms != self._terms:
            self._terms = terms
            changed = [rule.prepare() or rule.follow() for rule in self.rules]
        else:
            changed = [rule.follow() for rule in self._following]
        if any(changed):
            self._arrange()
        self._generation = generation

    def _arrange(self) -> None:
        """Only rules that can refuse a node are asked, only those that read views can change."""
        self._following = [rule for rule in self.rules if rule.tables]
        self.checks = [(rule.active, rule.check) for rule in self.rules if rule.check is not None]
        refusing = next((rule for rule in self.rules if rule.outcome is not None), None)
        self.before = None if refusing is None else refusing.refusal()


class BoundRule:
    """A predicate for one pod. `outcome` is what `prefilter` says of all nodes; `check` judges a node, and is None
    where every node is admitted; both are made from the views in `tables`."""

    __slots__ = ("_at", "_cluster", "_key", "_pod", "_versions", "active", "check", "outcome", "tables")

    def __init__(self, active: ActivePredicate, pod: PodInfo, tables: Tables) -> None:
        self.active = active
        self._pod = pod
        self._cluster = tables
        self._key, self._at = active.predicate.prepare(pod, tables)
        self._bind()

    def refusal(self) -> Refused:
        """What is said of all nodes."""
        assert self.outcome is not None
        return Refused(self.active.name, self.active.plugin, self.outcome)

    def kind(self) -> Hashable:
        """Equal where the rule is the same: it makes the same of the pod, of views, and of other objects."""
        tables = tuple((table, version) for table, version in zip(self.tables, self._versions, strict=True))
        state = self._cluster.state
        return (
            self.active.name,
            encoded(self._key),
            tables,
            tuple(map(state.generation_of, self.active.footprint.objects)),
        )

    def prepare(self) -> bool:
        """Other affinity terms may match the pod than before; whether the rule is another now."""
        key, at = self.active.predicate.prepare(self._pod, self._cluster)
        if key == self._key:
            return False
        self._key, self._at = key, at
        self._bind()
        return True

    def follow(self) -> bool:
        """Bring the views up to date; whether the rule is another now."""
        state = self._cluster.state
        same = True
        for table, version in zip(self.tables, self._versions, strict=True):
            table.follow(state)
            same = same and table.version == version
        if not same:
            self._bind()
        return not same

    def _bind(self) -> None:
        used: list[Table] = []
        self._cluster.used = used
        try:
            made: tuple[Any, ...] = self._at(self._cluster)
        finally:
            self._cluster.used = None
        self.outcome, self.check = made[:2]
        self.tables = used
        self._versions = [table.version for table in used]
