"""The tests of equivalence classes notice what they are for: each bug is put in, and a story or the machine fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.state import test_equivalence_bugs as stories
from tests.state.test_equivalence_machine import EquivalenceMachine

from ksp.compile.tables import Tables
from ksp.core.cycle import Cycle, Decision
from ksp.core.equivalence import recall
from ksp.core.equivalence.labels import _WatchedTables
from ksp.core.equivalence.memo import At, Memo
from ksp.core.equivalence.predicates import PredicateMemo
from ksp.core.equivalence.priorities import PriorityMemo
from ksp.core.equivalence.recall import Recall, _Group
from ksp.model.info import PodInfo

Patch = pytest.MonkeyPatch
Story = Callable[[], None]


def changed_nodes_are_not_asked_again(patch: Patch) -> None:
    patch.setattr(Memo, "_touched", lambda _: ())


def changed_views_are_not_looked_at(patch: Patch) -> None:
    patch.setattr(Memo, "_other_views", lambda _: False)


def changed_entries_concern_nobody(patch: Patch) -> None:
    patch.setattr(Memo, "_entries_read", lambda *_: set())


def what_is_common_to_all_nodes_is_not_compared(patch: Patch) -> None:
    """As if the least number of a view, or whether it is empty, were no matter."""
    for kind in (PredicateMemo, PriorityMemo):
        patch.setattr(kind, "_stand", lambda _: None)


def objects_are_taken_for_what_they_were(patch: Patch) -> None:
    minding(patch, Recall, "stands", _kinds=())
    minding(patch, _Group, "forget", _kinds=())


def terms_of_other_pods_are_not_minded(patch: Patch) -> None:
    patch.setattr(Tables, "terms_generation", 0)
    patch.setattr(_WatchedTables, "matching", lambda self, name, _: self._tables.matching(name, self._pod))


def minding(patch: Patch, kind: type, name: str, **others: object) -> None:
    """The method takes attributes for what they are not."""
    method = getattr(kind, name)

    def patched(self: Any) -> Any:
        with pytest.MonkeyPatch.context() as while_it_runs:
            for attribute, value in others.items():
                while_it_runs.setattr(self, attribute, value)
            return method(self)

    patch.setattr(kind, name, patched)


def what_was_made_of_an_earlier_pod_is_kept_though_objects_changed(patch: Patch) -> None:
    take = Memo.take

    def taken(self: Memo, at: At) -> None:
        if self._made < 0:
            take(self, at)

    patch.setattr(Memo, "take", taken)


def all_pods_are_alike(patch: Patch) -> None:
    patch.setattr(recall, "encoded", lambda _: b"")


def what_was_found_is_stored_as_if_it_were_found_later(patch: Patch) -> None:
    """What changed in between is never seen."""
    decide = Cycle.decide

    def decided(self: Cycle, pod: PodInfo) -> Decision:
        decision = decide(self, pod)
        for memo in self.classes._recall._memos.values():
            memo.since = self.state.generation if memo.since >= 0 else -1
            memo._tables = tuple((table, table.version) for table, _ in memo._tables)
        return decision

    patch.setattr(Cycle, "decide", decided)


SEEDED: list[tuple[Callable[[Patch], None], Story]] = [
    (changed_nodes_are_not_asked_again, stories.test_what_was_decided_before_a_node_changed_is_not_said_after_it),
    (changed_nodes_are_not_asked_again, stories.test_a_node_that_goes_and_returns_is_not_what_it_was),
    (changed_nodes_are_not_asked_again, stories.test_a_node_that_takes_the_place_of_another_is_not_taken_for_it),
    (changed_views_are_not_looked_at, stories.test_a_pod_that_was_just_decided_keeps_others_away),
    (changed_entries_concern_nobody, stories.test_a_pod_whose_labels_change_is_another_neighbour),
    (what_is_common_to_all_nodes_is_not_compared, stories.test_one_pod_can_change_what_all_nodes_are_to_a_class),
    (objects_are_taken_for_what_they_were, stories.test_changes_of_storage_are_seen_by_pods_that_use_it),
    (objects_are_taken_for_what_they_were, stories.test_a_service_that_comes_spreads_the_pods_that_it_selects),
    (terms_of_other_pods_are_not_minded, stories.test_a_pod_that_the_watch_shows_keeps_others_away),
    (
        what_was_made_of_an_earlier_pod_is_kept_though_objects_changed,
        stories.test_limits_of_storage_drivers_are_seen_when_they_change,
    ),
    (all_pods_are_alike, stories.test_pods_of_a_stateful_set_do_not_share_what_their_claims_say),
    (all_pods_are_alike, stories.test_labels_that_read_alike_when_strung_together_are_not_alike),
    (what_was_found_is_stored_as_if_it_were_found_later, stories.test_one_pod_can_change_what_all_nodes_are_to_a_class),
]


@pytest.mark.parametrize(("bug", "story"), SEEDED, ids=[f"{bug.__name__}-{story.__name__}" for bug, story in SEEDED])
def test_a_story_fails_with_the_bug_in(bug: Callable[[Patch], None], story: Story, monkeypatch: Patch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        story()


@pytest.mark.parametrize("bug", [changed_views_are_not_looked_at, changed_nodes_are_not_asked_again])
def test_the_machine_fails_with_the_bug_in(bug: Callable[[Patch], None], monkeypatch: Patch) -> None:
    bug(monkeypatch)
    once = settings(max_examples=50, stateful_step_count=50, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(EquivalenceMachine, settings=once)
