"""What is said of nodes: which can take a pod, and why the others cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ksp.compile.runtime import Denial, Failure
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.profile import ActivePredicate

Check = tuple[ActivePredicate, Callable[[NodeInfo], Denial | Failure | None]]
Nominated = Callable[[], Mapping[str, Mapping[str, PodInfo]]]


@dataclass(frozen=True, slots=True)
class Refused:
    """A rule's answer for a node, or for all nodes: a denial, or a failure of the attempt. `others` are the denials by
    rules after it, where all rules are asked."""

    rule: str
    plugin: str
    answer: Denial | Failure
    others: tuple[Refused, ...] = ()

    def each(self) -> tuple[Refused, ...]:
        """This one and the others."""
        return (self, *self.others)

    @property
    def is_final(self) -> bool:
        """No pod that leaves can change this answer, says one of the rules that gave it."""
        if isinstance(self.answer, Denial) and self.answer.unresolvable:
            return True
        return bool(self.others) and any(other.is_final for other in self.others)


Judged = Sequence[tuple[NodeInfo, Refused | None]]


class Filtered:
    """What came of filtering: `before` if a `prefilter` decided for all nodes; else the feasible nodes, in the order in
    which they were looked at, and for the others the first rule that refused them (with the others that did, if all
    were asked). `examined` is how many nodes were looked at. `judged` gives them with what was said of them: it is
    called when somebody asks."""

    __slots__ = ("_feasible", "_judged", "_refused", "before", "examined")

    def __init__(
        self, before: Refused | None = None, examined: int = 0, judged: Callable[[], Judged] | None = None
    ) -> None:
        self.before = before
        self.examined = examined
        self._judged = judged
        self._feasible: list[NodeInfo] = []
        self._refused: dict[str, Refused] = {}

    @property
    def feasible(self) -> list[NodeInfo]:
        self._make()
        return self._feasible

    @property
    def refused(self) -> dict[str, Refused]:
        """By the names of the nodes."""
        self._make()
        return self._refused

    def without(self, refused: Mapping[str, Refused | None]) -> Filtered:
        """The same, where these of the feasible nodes, by name, are refused, too. Nothing is said any more of those
        that have no refusal."""
        made = Filtered(self.before, self.examined)
        made._feasible = [node for node in self.feasible if node.name not in refused]
        made._refused = self.refused | {name: each for name, each in refused.items() if each is not None}
        return made

    def failure(self) -> Refused | None:
        """The first failure, which ends the attempt, if there is one."""
        if self.before is not None:
            return self.before if isinstance(self.before.answer, Failure) else None
        return next((r for r in self.refused.values() if isinstance(r.answer, Failure)), None)

    def _make(self) -> None:
        if self._judged is not None:
            judged, self._judged = self._judged, None
            for node, refused in judged():
                if refused is None:
                    self._feasible.append(node)
                else:
                    self._refused[node.name] = refused


def judge(checks: Iterable[Check], node: NodeInfo) -> Refused | None:
    """The first rule that refuses the node."""
    for active, check in checks:
        answer = check(node)
        if answer is not None:
            return Refused(active.name, active.plugin, answer)
    return None


def judge_by_all(checks: Iterable[Check], node: NodeInfo) -> Refused | None:
    """The first rule that refuses the node, with all others that do. A failure hides denials, as in kube-scheduler."""
    found: list[Refused] = []
    for active, check in checks:
        answer = check(node)
        if isinstance(answer, Failure):
            return Refused(active.name, active.plugin, answer)
        if answer is not None:
            found.append(Refused(active.name, active.plugin, answer))
    return together(found)


def together(refusals: Sequence[Refused]) -> Refused | None:
    """The first of these denials of one node, with the others; None if there are none."""
    if len(refusals) < 2:
        return refusals[0] if refusals else None
    return replace(refusals[0], others=tuple(refusals[1:]))
