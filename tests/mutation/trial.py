"""The rules asked before and after a change: does a footprint name what gave another answer, and wake whom it helps?

Equivalence classes are asked, too: about a changed pod, which may be taken for the one that it was, and after a change
of the cluster, of which they must have taken notice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.mutation.attempts import Attempt, Attempts, Leaf
from tests.mutation.figures import Figures
from tests.mutation.instances import Instance, profile
from tests.mutation.reads import Changed
from tests.mutation.world import Replaced, World, common, nodes_of
from tests.oracle.classes import OneRule

from ksp.compile.program import Predicate
from ksp.compile.runtime import Denial, Failure
from ksp.compile.tables import Tables
from ksp.core.state import ClusterState
from ksp.core.wake import NODE_ADD, Wake, differs
from ksp.model.info import NodeInfo, PodInfo

Answers = Mapping[str, object]

ATTEMPTS: Final = 6  # to find a change that the language can see
SOUGHT: Final = 2  # after each change anywhere, changes that matter
ATTEMPTS_TO_MATTER: Final = 30


@dataclass(frozen=True, slots=True)
class Difference:
    """What one change did: for the language, and for the core. `itself` if the pod that is to be placed has changed in
    a way for which it is tried again. `sought` if the change was made because it matters to some rule."""

    attempt: Attempt
    changed: Changed
    heard: Sequence[frozenset[str]] = ()
    itself: bool = False
    sought: bool = False

    @property
    def events(self) -> frozenset[str]:
        return frozenset().union(*self.heard)


@dataclass(frozen=True, slots=True)
class After:
    """The cluster after a change: made anew, and as those know it who followed the change."""

    pod: PodInfo
    state: ClusterState
    followed: Following


class Following:
    """A cluster, and the equivalence classes of rules in it, which know a pod."""

    def __init__(self, attempts: Attempts, instances: Sequence[Instance]) -> None:
        self.world = World(attempts.made)
        present = self.world.scheduler.present
        self.tables = present.tables
        self.classes = [OneRule(each.rule, each.made, each.footprint, present) for each in instances]
        for rule in self.classes:
            rule.remembered(attempts.pod, self.world.state.node_list())


class Trial:
    """One case, and the rules with their arguments for it. Changes are made one after another, and taken back."""

    def __init__(self, attempts: Attempts, instances: Sequence[Instance], figures: Mapping[str, Figures]) -> None:
        self.attempts, self.instances, self.figures = attempts, instances, figures
        self.pod, self.dice = attempts.pod, attempts.dice
        self.following = Following(attempts, instances)
        self.base = self.world.anew()
        self.names = common(self.base, self.base)
        self.wake = Wake([profile(instances)])
        self.before = [self._answers_at_first(instance, self.names) for instance in instances]
        self.speaking = [_speaks(known) for known in self.before]
        self._leaves: dict[tuple[str, Leaf], bool] = {}

    @property
    def world(self) -> World:
        return self.following.world

    def run(self, changes: int, enough: int) -> None:
        """Makes so many changes anywhere; after each some that matter to rules to which fewer than `enough` did, if
        such are found."""
        for _ in range(changes):
            found = (self.attempts.some() for _ in range(ATTEMPTS))
            anywhere = next((attempt for attempt in found if attempt is not None), None)
            if anywhere is not None:
                self.make(anywhere)
            for _ in range(SOUGHT):
                sought = self._sought(enough)
                that_matters = next(self._that_matter(sought), None) if sought is not None else None
                if that_matters is not None:
                    self.make(that_matters, sought=True)
        for (rule, _), mattered in self._leaves.items():
            self.figures[rule].leaves += 1
            self.figures[rule].leaves_mattered += mattered
        self._leaves.clear()

    # ---- changes that matter

    def _sought(self, enough: int) -> int | None:
        """A rule of which too little is known, by its place; rather one that speaks in this case, or is least known."""
        known = [self._known(place, enough) for place in range(len(self.instances))]
        weights = [
            (1.0 if speaks else 0.2) / (1 + few) if few < enough else 0.0
            for few, speaks in zip(known, self.speaking, strict=True)
        ]
        return self.dice.choices(range(len(weights)), weights)[0] if any(weights) else None

    def _known(self, place: int, enough: int) -> int:
        """How many changes mattered to a rule; of a predicate that denies here, some of them have to help."""
        instance, figures = self.instances[place], self.figures[self.instances[place].name]
        if not instance.named.parts:
            return enough
        helped = sum(figures.events_helped.values())
        may_help = (
            self.speaking[place] and isinstance(instance.made, Predicate) and instance.footprint.events != {NODE_ADD}
        )
        return min(figures.effective, 4 * helped) if may_help else figures.effective

    def _that_matter(self, sought: int) -> Iterator[Attempt]:
        """Changes that the rule's footprint names, and that give another answer; half of them help, if it denies."""
        named = self.instances[sought].named
        ways = named.ways()
        helpful = any(isinstance(a, Denial) for a in self.before[sought].values()) and self.dice.random() < 0.5
        for _ in range(ATTEMPTS_TO_MATTER):
            attempt = self.attempts.some(ways)
            if attempt is not None and named.of(attempt.seen):
                before, after = self.before[sought], self._answers_after(attempt, self.instances[sought])
                if _helped(before, after) if helpful else before != after:
                    yield attempt

    def _answers_after(self, attempt: Attempt, instance: Instance) -> Answers:
        """What the rule would say; for a quick look, what comes or goes counts as if it did not."""
        replaced = attempt.replaced
        if replaced is None or not replaced.in_place:
            return answers(instance, attempt.pod, Tables(self.base), nodes_of(self.base, self.names))
        self.world.tell(replaced)
        nodes = nodes_of(self.world.state, self.names)
        found = answers(instance, self.pod, self.world.scheduler.tables, nodes)
        self._take_back(replaced)
        return found

    # ---- one change

    def make(self, attempt: Attempt, *, sought: bool = False) -> None:
        """Makes the change, compares, and takes it back."""
        replaced = attempt.replaced
        if replaced is None:
            itself = differs(self.pod, attempt.pod)
            what = Difference(attempt, attempt.seen, itself=itself, sought=sought)
            self._judge(what, After(attempt.pod, self.base, self.following))
            return
        following = self.following if replaced.in_place else Following(self.attempts, self.instances)
        world = following.world
        changed, heard = world.tell(replaced)
        what = Difference(attempt, changed, heard, sought=sought)
        self._judge(what, After(self.pod, world.anew(), following))
        if world is self.world:
            self._take_back(replaced)

    def _take_back(self, replaced: Replaced) -> None:
        """The cluster is as it was. A node that was in another zone comes back as the last of its zone: then all is
        made anew, since rules can see the order."""
        self.world.tell(replaced.back())
        if common(self.world.state, self.base) != self.names:
            self.following = Following(self.attempts, self.instances)

    def _judge(self, what: Difference, after: After) -> None:
        names = common(self.base, after.state)
        nodes, known = nodes_of(after.state, names), nodes_of(after.followed.world.state, names)
        truth = Tables(after.state)
        for instance, first, classes in zip(self.instances, self.before, after.followed.classes, strict=True):
            by_itself = isinstance(instance.made, Predicate) or len(names) == len(self.names)
            before = first if by_itself else self._answers_at_first(instance, names)
            now = answers(instance, after.pod, truth, nodes)
            followed = answers(instance, after.pod, after.followed.tables, known)
            figures = self.figures[instance.name]
            figures.tried += 1
            if followed != now:
                figures.missed.append(self._said(what, f"tables that follow say {followed}, new ones {now}"))
            remembered = classes.remembered(after.pod, known)
            if not _is_the_same(remembered, now):
                figures.missed.append(self._said(what, f"its class says {remembered}, and it should be {now}"))
            self._compare(instance, what, before, now)

    def _answers_at_first(self, instance: Instance, names: Sequence[str]) -> Answers:
        return answers(instance, self.pod, Tables(self.base), nodes_of(self.base, names))

    def _compare(self, instance: Instance, what: Difference, before: Answers, after: Answers) -> None:
        figures = self.figures[instance.name]
        effective = any(before[name] != answer for name, answer in after.items())
        figures.effective += effective
        named = instance.named.of(what.changed)
        figures.named(named, effective=effective)
        if effective and not named:
            figures.missed.append(self._said(what, "the footprint does not name it"))
        if named and not what.sought:
            key = instance.name, what.attempt.leaf
            self._leaves[key] = self._leaves.get(key, False) or effective
        if any(isinstance(before[name], Denial) for name in after):
            self._wake(instance, what, helped=_helped(before, after))

    def _wake(self, instance: Instance, what: Difference, *, helped: bool) -> None:
        """A pod that the rule denied comes out of its sleep if that can help it."""
        figures, rules = self.figures[instance.name], frozenset({instance.name})
        woken = what.itself or any(self.wake.may_help(rules, events) for events in what.heard)
        if helped and not woken:
            figures.missed.append(self._said(what, f"no event of {what.heard} wakes the pod"))
        if what.heard and woken and NODE_ADD not in what.events:  # whether a new node helps, the others do not tell
            figures.woke(what.events & instance.footprint.events, helped=helped)
            figures.woken += not what.sought
            figures.helped += helped and not what.sought

    def _said(self, what: Difference, problem: str) -> str:
        return f"{self.attempts.case['id']}: {what.attempt.said}: {problem}"


def _speaks(known: Answers) -> bool:
    """Of a predicate: it denies. Of a priority: some nodes are better than others."""
    values = list(known.values())
    return any(isinstance(value, Denial) for value in values) or any(value != values[0] for value in values)


def _helped(before: Answers, after: Answers) -> bool:
    """A node was denied and is admitted."""
    return any(after[name] is None and isinstance(before[name], Denial) for name in after)


def _is_the_same(remembered: Answers, now: Answers) -> bool:
    """What a class remembers is what the rule says; of a priority in the end, and of an error the sentence."""
    if "" not in remembered:
        ends = {name: answer[1] if isinstance(answer, list) else answer for name, answer in now.items()}
        return remembered == ends
    ended = remembered[""]
    if not isinstance(ended, str):
        return all(answer == ended for answer in now.values())
    failures = [answer for answer in now.values() if isinstance(answer, Failure)]
    if failures:
        return ended.endswith(failures[0].message)
    return any(isinstance(answer, list) and not 0 <= answer[1] <= 100 for answer in now.values())


def answers(instance: Instance, pod: PodInfo, tables: Tables, nodes: Sequence[NodeInfo]) -> dict[str, object]:
    """What the rule says of each node: None, a Denial or a Failure; of a priority the score before and after it is
    brought to 0..100."""
    made = instance.made
    if isinstance(made, Predicate):
        bound = made.bind(pod, tables)
        check = bound.check
        return {node.name: bound.outcome if check is None else check(node) for node in nodes}
    priority = made.bind(pod, tables)
    if priority.outcome is not None:
        return dict.fromkeys((node.name for node in nodes), priority.outcome)
    scores = priority.scores(nodes)
    if not isinstance(scores, list):
        return dict.fromkeys((node.name for node in nodes), scores)
    normal = scores if priority.normalize is None else priority.normalize(nodes, scores)
    return {node.name: pair for node, *pair in zip(nodes, scores, normal, strict=True)}
