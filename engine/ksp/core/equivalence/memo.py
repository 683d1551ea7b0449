"""What one rule says of every node, for the pods of one key.

A memo is brought up to date by the cheapest way that will do. If no view that the rule asked for changed, only nodes
are asked of which a part changed that the rule reads. If one did, the rule is bound to the views anew; if it then
reads the same of them as before, only nodes that read changed entries are asked as well, else all.

It notes which nodes have another answer than before, by number, so that what is made of memos can follow them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from ksp.compile.entries import Patterns, view_entries
from ksp.compile.node_columns import IntArray
from ksp.compile.node_parts import ANYTHING, parts_read
from ksp.compile.tables import Table, Tables
from ksp.core.equivalence.counters import Counters
from ksp.core.equivalence.present import Present
from ksp.model.info import PodInfo
from ksp.policy.profile import ActivePredicate, ActivePriority

FEW: Final = 4  # nodes are asked one by one; more of them in columns
MANY_ENTRIES: Final = 64  # of a view that changed, from which on all nodes are asked
MANY_NODES: Final = 8  # one in so many of all slots is many
NAME: Final = ("name",)
MEMO: Final = 16_384  # bytes of a memo without its arrays: its lines, functions, and few answers
LINES: Final = 256  # of nodes with another answer, that a memo remembers

At = Callable[[Tables], tuple[Any, ...]]


class Subject:
    """A rule of a profile, as its memos know it. `place` is its own among the profile's rules; `run` gives what it
    makes of a pod: its key, and what to ask; `reads` are parts of nodes, `objects` kinds of other objects; with
    `columns` it is asked in columns where it can be. `concerns` remembers of sets of parts whether it reads any."""

    def __init__(
        self, place: int, active: ActivePredicate | ActivePriority, counters: Counters, *, columns: bool = True
    ) -> None:
        rule = active.predicate if isinstance(active, ActivePredicate) else active.priority
        self.place = place
        self.active = active
        self.rule = rule.rule
        self.run: Callable[[PodInfo, Tables], tuple[tuple[Any, ...], At]] = rule.run
        self.reads = parts_read(active.footprint.node) | {ANYTHING}
        self.objects = active.footprint.objects
        self.counters = counters
        self.columns = columns
        self.concerns: dict[frozenset[str], bool] = {}

    @cached_property
    def entries(self) -> Mapping[str, Patterns | None]:
        """By which entries of views nodes are concerned."""
        return view_entries(self.rule)


class Memo(ABC):
    """What both kinds of rules' memos do. `since` is the number of the last change that the memo has seen, -1 if it
    has seen none; `end` counts the notes of other answers, of which those from `begin` on are kept; `asked` grows when
    anything that the rule reads of nodes or views changed, be the answers the same. `fixed` if no change but of the
    objects that the pod names can give another answer."""

    def __init__(self, subject: Subject, present: Present) -> None:
        self.subject = subject
        self.present = present
        self.since = -1
        self.end = 0
        self.begin = 0
        self.asked = 0
        self.fixed = False
        self._made = -1
        self._at: At
        self._tables: tuple[tuple[Table, int], ...] = ()
        self._lines: list[int] = []

    # ---- following the cluster

    def take(self, at: At) -> None:
        """What the rule makes of a pod with the memo's key, in the present state. If an object of a kind that the rule
        reads has changed, what it made of an earlier pod is worth nothing."""
        objects = self.subject.objects
        if self._made < 0 or (objects and max(map(self.present.state.generation_of, objects)) > self._made):
            self._at = at
            self._made = self.present.state.generation
            self.since = -1
            self.fixed = False

    def refresh(self) -> None:
        """Bring the memo up to date with the present, which has followed the state."""
        generation = self.present.generation
        if self.fixed or self.since == generation:
            return
        try:
            self._follow()
        except BaseException:
            self.since = -1  # what was found so far may be half of it,
            self._note_all()  # and half of that may be stored, which will not look like another answer next time
            raise
        self.since = generation

    def _follow(self) -> None:
        if self.since < 0:
            self._renew()
        elif self._tables and self._other_views():
            self._rebind()
        elif (slots := self._touched()) is None:
            self._ask_all()
            self.asked += 1
        elif slots:
            self._ask(slots)
            self.asked += 1

    def changed_since(self, end: int) -> Sequence[int] | None:
        """The slots with another answer than when `end` was that; None if it is not known which."""
        return None if end < self.begin else self._lines[end - self.begin :]

    def _renew(self) -> None:
        if self.end:
            self.subject.counters.invalidations += 1
        self._bind()
        self._ask_all()

    def _other_views(self) -> bool:
        state = self.present.state
        for table, version in self._tables:
            table.follow(state)
            if table.version != version:
                return True
        return False

    def _rebind(self) -> None:
        """A view changed: ask again which nodes are concerned by that, if that can be told, else all."""
        before, tables = self._stand(), self._tables
        self._bind()
        slots = self._concerned(tables) if before == self._stand() else None
        if slots is None:
            self.subject.counters.invalidations += 1
            self._ask_all()
        elif slots:
            self._ask(slots)

    def _concerned(self, before: Sequence[tuple[Table, int]]) -> Sequence[int] | None:
        """The nodes that read a changed entry of the views, which were `before` at these versions, and those of which
        a part changed; None if they may be any, or are many."""
        touched = self._touched()
        if touched is None or len(before) != len(self._tables):
            return None
        columns = self.present.columns
        slots = set(touched)
        for (old, version), (table, now) in zip(before, self._tables, strict=True):
            if table is not old:
                return None
            if now == version:
                continue
            read = self._entries_read(table, version)
            if read is None:
                return None
            for part, value in read:
                if part == NAME:
                    slot = columns.slot_of.get(str(value))
                    found = () if slot is None else (slot,)
                else:
                    found = columns.slots_with(part, value).tolist()
                if len(slots) + len(found) > max(FEW, columns.slots // MANY_NODES):
                    return None
                slots.update(found)
        return list(slots)

    def _entries_read(self, table: Table, since: int) -> set[tuple[tuple[str, ...], object]] | None:
        """What nodes have that read an entry of the table which changed after that version: parts and their values;
        None if they may be any."""
        patterns = self.subject.entries.get(table.plan.name, ())
        if patterns is None:
            return None
        read = set()
        for pattern in patterns:
            changed = table.changed(since, presence=pattern.presence)
            if changed is None or len(changed) > MANY_ENTRIES:
                return None
            read.update([pattern.of(keys) for keys in changed])
        return read

    def _bind(self) -> None:
        tables = self.present.tables
        used: list[Table] = []
        tables.used = used
        try:
            self._set(self._at(tables))
        finally:
            tables.used = None
        self.asked += 1
        self._tables = tuple((table, table.version) for table in used)
        self.fixed = not used and self._same_everywhere()

    def _touched(self) -> Sequence[int] | None:
        """The nodes of which a part changed that the rule reads."""
        delta = self.present.delta(self.since)
        if delta is None:
            return None
        concerns = self.subject.concerns
        found: Sequence[int] = ()
        for parts, slots in delta.items():
            concerned = concerns.get(parts)
            if concerned is None:
                concerned = concerns[parts] = not parts.isdisjoint(self.subject.reads)
            if concerned:
                found = (*found, *slots) if found else slots
        return found

    def _note(self, slots: Sequence[int]) -> None:
        """These nodes have another answer."""
        self._lines.extend(slots)
        self.end += len(slots)
        if len(self._lines) > LINES:
            self._note_all()

    def _note_all(self) -> None:
        """Any node may have another answer."""
        self.end += 1
        self.begin = self.end
        self._lines = []

    def _compare(self, other: IntArray) -> None:
        """These nodes have another answer; they may be many."""
        if len(other) > LINES // 4:
            self._note_all()
        elif len(other):
            self._note(other.tolist())

    # ---- the rule's own

    @property
    @abstractmethod
    def bytes(self) -> int:
        """What it takes, without views and the texts of answers."""

    @abstractmethod
    def _stand(self) -> object:
        """What must be equal for nodes that read the same entries of views to have the same answers."""

    @abstractmethod
    def _set(self, bound: tuple[Any, ...]) -> None:
        """Take what the rule gave when it was bound to the views."""

    @abstractmethod
    def _same_everywhere(self) -> bool:
        """The rule says the same of all nodes, whatever they are."""

    @abstractmethod
    def _ask_all(self) -> None:
        """Ask about all nodes."""

    @abstractmethod
    def _ask(self, slots: Sequence[int]) -> None:
        """Ask about these nodes."""

    # ---- nodes

    def _alive(self) -> list[int]:
        slots: list[int] = self.present.columns.order.tolist()
        return slots
