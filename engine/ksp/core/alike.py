"""Nodes that a search for victims need not tell apart.

Victims are looked for on a node by taking off the pods of lower priority and putting them back one by one, in order of
importance, asking each time whether the pod still fits (`ksp.core.fits`). The answers, and so which places in that
order become victims, follow from what the rules read of the node and of the pods on it. Nodes that have the same of
that give the same, and one of them is enough to be judged:

- Rules that read no sums over a node's pods answer the same throughout, as long as none of the pods in question counts
  in a view that they read. If such a rule refuses the node, no victims help.
- For the other rules the parts of the node that they read must be equal, and so must, place by place, what the pods in
  question count for in the sums that they read, and their priorities. The same holds for pods that are nominated to
  the node, which the search puts there for a while.
- If one of the pods does count in a view, or would, the node is a group of its own.

Names and labels make no difference unless one of those other rules reads them. What is read comes from footprints, as
far as the rules can refuse the pod at all; no rule has code of its own here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Final, NamedTuple

from ksp.compile.node_parts import ANYTHING, SUMS, parts_read
from ksp.core.filter import Check
from ksp.core.fits import Fits
from ksp.core.nominations import counting
from ksp.core.shapes import Parts, Shape, counted_for, values_under
from ksp.core.state import INDEXED_FIELDS
from ksp.model.info import NodeInfo, PodInfo

HOPELESS: Final = "no victims help"
MOST: Final = 100_000  # distinct shapes that are remembered, by their numbers
MOST_NOMINATED: Final = 10_000  # pods of which it is remembered what they count for

Signature = Hashable
Nominated = Mapping[str, Mapping[str, PodInfo]]  # by node, and uid
_NOWHERE: Final[Nominated] = {}
_NOBODY: Final[Mapping[str, PodInfo]] = {}


# By node: its number, and who was nominated to it; its signature. No pods of nodes: these would outlive the pods.
Signatures = MutableMapping[str, tuple[int, Mapping[str, PodInfo], Signature]]


class Alone(NamedTuple):
    """The signature of a node that is a group of its own: rules may see its pods come and go in views."""

    node: str


class Together(NamedTuple):
    """The signature of nodes that count the same, by `number`, whose pods in question are `covered` alike, each by what
    stands in its place, and to which pods are nominated that count the same. Without either it is the number alone."""

    number: int
    covered: tuple[Any, ...]
    nominated: tuple[bytes, ...]


class Alike:
    """Groups nodes. Remembers between searches what is equal of nodes that did not change."""

    def __init__(self) -> None:
        self._shapes: dict[Parts, dict[str, Shape]] = {}
        self._numbers: dict[tuple[bytes, ...], int] = {}
        self._nominated: dict[tuple[str, Parts], tuple[PodInfo, bytes]] = {}
        self._next = 0

    def groups(
        self,
        reads: Reads,
        nodes: Iterable[NodeInfo],
        *,
        nominated: Nominated = _NOWHERE,
        covered: Callable[[PodInfo], Hashable] | None = None,
        signatures: Signatures | None = None,
    ) -> dict[Signature, list[NodeInfo]]:
        """The nodes by what matters when victims for the pod are looked for; those where none can be found under
        HOPELESS. `nominated` are all nominated pods, of which those that count are to be put on their node for a while;
        where one comes or goes it has another map. `covered` says what protects a pod from being a victim, such as its
        disruption budgets. `signatures` are those that were found before, by pods of the same priority, of which the
        rules make the same (`Fits.kind`), and with the same `covered`."""
        reads.follow()
        signatures = {} if signatures is None else signatures
        uid = reads.fits.pod.uid
        found: dict[Signature, list[NodeInfo]] = {}
        for node in nodes:
            there = nominated.get(node.name, _NOBODY)
            known = signatures.get(node.name)
            if known is None or known[0] != node.generation or known[1] is not there or uid in there:
                known = node.generation, there, self._signature(self.shape(node, reads), reads, there, covered)
                if uid not in there:
                    signatures[node.name] = known
            found.setdefault(known[2], []).append(node)
        return found

    def shape(self, node: NodeInfo, reads: Reads) -> Shape:
        """What counts of the node. Not to be asked for while it lacks pods, or has others, for a trial."""
        shapes = self._shapes.setdefault(reads.parts, {})
        shape = shapes.get(node.name)
        if shape is None or shape.generation != node.generation:
            if len(shapes) > 2 * len(reads.fits.tables.state.nodes):
                shapes.clear()  # most of them are gone
            shape = shapes[node.name] = Shape(node, reads.parts)
        return shape

    def _signature(
        self, shape: Shape, reads: Reads, there: Mapping[str, PodInfo], covered: Callable[[PodInfo], Hashable] | None
    ) -> Signature:
        node, pod = shape.node, reads.fits.pod
        victims = shape.below(pod.priority)
        if not victims:
            return HOPELESS
        others = counting(there, pod) if there else ()
        if reads.sees_any(victims) or (others and reads.would_see_any(others, node)):
            return Alone(node.name)
        if reads.refuses(node):
            return HOPELESS
        number = self._number(shape, len(victims))
        if covered is None and not others:
            return number
        protected = () if covered is None else tuple(covered(pod) for pod in victims)
        return Together(number, protected, tuple(self._counted(pod, reads.parts) for pod in others))

    def _counted(self, pod: PodInfo, parts: Parts) -> bytes:
        """What a nominated pod counts for."""
        known = self._nominated.get((pod.uid, parts))
        if known is None or known[0] is not pod:
            if len(self._nominated) >= MOST_NOMINATED:
                self._nominated.clear()
            known = self._nominated[pod.uid, parts] = pod, counted_for(pod, parts)
        return known[1]

    def _number(self, shape: Shape, victims: int) -> int:
        """Equal for equal shapes; none is used twice."""
        number = shape.numbers.get(victims)
        if number is None:
            if len(self._numbers) >= MOST:
                self._numbers.clear()
            self._next += 1
            number = self._numbers.setdefault(shape.last(victims), self._next)
            shape.numbers[victims] = number
        return number


class Reads:
    """What the rules read that can refuse the pod. `parts` are those of a node that matter to rules which read sums
    over its pods, `checks` these rules."""

    def __init__(self, fits: Fits) -> None:
        self.fits = fits
        self._derive()

    def follow(self) -> None:
        """Bring it up to date: what a trial changed in views, and took back, makes other functions of the rules."""
        self.fits.follow()
        if self._generation != self.fits.tables.state.generation:
            self._derive()

    def _derive(self) -> None:
        fits = self.fits
        self._generation = fits.tables.state.generation
        asked = [rule for rule in fits.rules if rule.check is not None]
        reads = {rule.active.name: rule.active.footprint.node for rule in asked}
        of_pods = {name for name, paths in reads.items() if not parts_read(paths).isdisjoint(SUMS)}
        tables = [table for rule in fits.rules for table in rule.tables]
        self._constant = [rule.check for rule in asked if rule.active.name not in of_pods and rule.check is not None]
        self._of_pods = [rule for rule in asked if rule.active.name in of_pods]
        self._hopeless = any(rule.outcome is not None for rule in fits.rules)
        self.parts: Parts = frozenset().union(*(values_under(path) for name in of_pods for path in reads[name]))
        self.checks: list[Check] = [(rule.active, rule.check) for rule in self._of_pods if rule.check is not None]
        self._apart = ANYTHING in self.parts or any(table.plan.reads_sums for table in tables)
        self._of_rows = [table for table in tables if table.plan.relation == "pods"]
        self._tables = [table for table in tables if table.rows]
        self._seen: dict[str, bool] = {}

    def sees_any(self, pods: Sequence[PodInfo]) -> bool:
        """A view can be another when these pods are gone, or be read as another."""
        if self._apart:
            return True
        return bool(self._tables) and any(table.contributes(pod.uid) for table in self._tables for pod in pods)

    def would_see_any(self, pods: Sequence[PodInfo], node: NodeInfo) -> bool:
        """A view can be another when these pods, which have no place, are on the node."""
        if self._apart:
            return True
        for pod in pods:
            if pod.uid not in self._seen:
                self._seen[pod.uid] = self._would_see(pod, node)
        return any(self._seen[pod.uid] for pod in pods)

    def _would_see(self, pod: PodInfo, node: NodeInfo) -> bool:
        if any(getattr(pod, field) for field in INDEXED_FIELDS):
            return True  # its terms may match the pod
        before, pod.node = pod.node, node
        try:
            return any(len(table.contribute(pod)) > 0 for table in self._of_rows)
        finally:
            pod.node = before

    def refuses(self, node: NodeInfo) -> bool:
        """The node is refused whichever of its pods are gone."""
        for check in self._constant:
            if check(node) is not None:
                return True
        return self._hopeless

    def kind(self) -> Hashable:
        """Equal for searches in which equal signatures, that are not Alone, give equal victims."""
        return tuple(rule.kind() for rule in self._of_pods)
