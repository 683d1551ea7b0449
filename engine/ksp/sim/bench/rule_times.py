"""How often each rule is asked, how long that takes, and what share of the nodes it denies.

The functions of a profile are wrapped, so a profile that is watched is slower than one that is not: its times compare
rules with each other, and are no measure of the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from ksp.compile.columns.verdicts import Verdicts
from ksp.compile.node_rows import Rows
from ksp.compile.program import BoundPredicate, BoundPriority, Predicate, Priority
from ksp.model.info import EMPTY_NODE
from ksp.policy.profile import Profile
from ksp.ports import Stopwatch

_Function = Callable[..., Any]


@dataclass(slots=True)
class RuleTimes:
    """Of one rule. `prepared` is how often it was bound to a pod, `bound` how often to the cluster's views;
    `evaluations` how many nodes it judged, `columns` how many of these in its column form, `denied` how many it did not
    admit. Seconds are those of binding and of judging; those of `normalize` count as judging."""

    name: str
    kind: str
    prepared: int = 0
    bound: int = 0
    evaluations: int = 0
    columns: int = 0
    denied: int = 0
    binding_seconds: float = 0.0
    judging_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        return self.binding_seconds + self.judging_seconds

    @property
    def selectivity(self) -> float | None:
        """The share of the judged nodes that were denied; None for a priority, and for a rule that judged none."""
        return self.denied / self.evaluations if self.kind == "predicate" and self.evaluations else None


class WatchedRules:
    """Profiles whose rules count and time their calls. Rules of one name are counted together."""

    def __init__(self, profiles: Iterable[Profile], stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch
        self._times: dict[tuple[str, str], RuleTimes] = {}
        self.profiles: Final = [self._profile(profile) for profile in profiles]

    def times(self) -> list[RuleTimes]:
        """Of all rules, the most expensive first."""
        return sorted(self._times.values(), key=lambda times: -times.seconds)

    def reset(self) -> None:
        """Forgets what was counted so far."""
        for key in self._times:
            times = self._times[key]
            times.prepared = times.bound = times.evaluations = times.columns = times.denied = 0
            times.binding_seconds = times.judging_seconds = 0.0

    def _profile(self, profile: Profile) -> Profile:
        predicates = tuple(
            replace(active, predicate=self._predicate(active.predicate, self._of(active.name, "predicate")))
            for active in profile.predicates
        )
        priorities = tuple(
            replace(active, priority=self._priority(active.priority, self._of(active.name, "priority")))
            for active in profile.priorities
        )
        return replace(profile, predicates=predicates, priorities=priorities)

    def _of(self, name: str, kind: str) -> RuleTimes:
        return self._times.setdefault((name, kind), RuleTimes(name, kind))

    def _predicate(self, predicate: Predicate, times: RuleTimes) -> Predicate:
        def bound(parts: BoundPredicate) -> BoundPredicate:
            return replace(
                parts,
                check=parts.check and self._judging(parts.check, times, _check_counts),
                column=parts.column and self._judging(parts.column, times, _verdict_counts),
            )

        run = self._binding(predicate.run, times, lambda parts: bound(BoundPredicate(*parts)))
        return Predicate(predicate.rule, run)

    def _priority(self, priority: Priority, times: RuleTimes) -> Priority:
        def bound(parts: BoundPriority) -> BoundPriority:
            return replace(
                parts,
                score=parts.score and self._judging(parts.score, times, lambda _score, _node: (1, 0, 0)),
                over_feasible=parts.over_feasible
                and self._judging(parts.over_feasible, times, lambda _scores, feasible: (len(feasible), 0, 0)),
                column=parts.column and self._judging(parts.column, times, _score_counts),
                normalize=parts.normalize and self._judging(parts.normalize, times, _nothing),
                normal=parts.normal and self._judging(parts.normal, times, _nothing),
            )

        run = self._binding(priority.run, times, lambda parts: bound(BoundPriority(*parts)))
        return Priority(priority.rule, run, priority.steady_at_zero)

    def _binding(self, run: _Function, times: RuleTimes, watched: Callable[[Any], object]) -> _Function:
        """`run` and the `at` that it gives, timed; what `at` gives is watched too."""
        read = self._stopwatch.read

        def timed_run(pod: Any, tables: Any) -> tuple[Any, _Function]:
            begun = read()
            key, at = run(pod, tables)
            times.binding_seconds += read() - begun
            times.prepared += 1

            def timed_at(now: Any) -> tuple[Any, ...]:
                begun = read()
                parts = at(now)
                times.binding_seconds += read() - begun
                times.bound += 1
                seen = watched(parts)
                return tuple(getattr(seen, each.name) for each in fields(seen))  # type: ignore[arg-type]

            return key, timed_at

        return timed_run

    def _judging(self, judge: _Function, times: RuleTimes, count: _Function) -> _Function:
        """The function, timed. `count(result, first argument)` gives evaluations, those in columns, denials."""
        read = self._stopwatch.read

        def timed(*given: Any) -> Any:
            begun = read()
            result = judge(*given)
            times.judging_seconds += read() - begun
            evaluations, columns, denied = count(result, given[0])
            times.evaluations += evaluations
            times.columns += columns
            times.denied += denied
            return result

        return timed


def _check_counts(answer: object, _node: object) -> tuple[int, int, int]:
    return 1, 0, int(answer is not None)


def _verdict_counts(verdicts: Verdicts, rows: Rows) -> tuple[int, int, int]:
    """Rows without a node do not count."""
    there = [code for code, node in zip(verdicts.codes.tolist(), rows.nodes, strict=True) if node is not EMPTY_NODE]
    return len(there), len(there), sum(code != 0 for code in there)


def _score_counts(_scores: object, rows: Rows) -> tuple[int, int, int]:
    there = sum(node is not EMPTY_NODE for node in rows.nodes)
    return there, there, 0


def _nothing(_result: object, _given: object) -> tuple[int, int, int]:
    return 0, 0, 0
