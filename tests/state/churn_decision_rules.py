"""What the churn machine does with time, with policies and with questions to extenders."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tests.state.churn_driver import Driver
from tests.state.churn_objects import PLAIN, POD_NAMES, PODS, RANKS
from tests.state.churn_policies import ANOTHER, policies

ALL: Final = 1_000
"""Slices in which any policy is prepared."""
BOTH: Final = 3
"""A policy that decides for this scheduler and another."""
FOR_ANOTHER: Final = next(i for i, (spec, _) in enumerate(PODS) if spec.get("schedulerName") == ANOTHER)

which_policy = st.sampled_from([0, 0, 0, 0, *range(len(policies()))])


class DecisionRules(RuleBasedStateMachine):
    """`driver` is there once everything has begun."""

    driver: Driver

    def show(self) -> None:
        """What the watches are not late with."""
        raise NotImplementedError

    # ---- decisions and time

    @rule()
    def step(self) -> None:
        self.driver.step()

    @rule()
    def step_until_nothing_is_due(self) -> None:
        self.driver.step_until_nothing_is_due()

    @rule(seconds=st.sampled_from([0.3, 1.0, 2.0, 10.0, 61.0, 601.0]))
    def time_passes(self, seconds: float) -> None:
        self.driver.wait(seconds)

    @rule()
    def time_passes_until_something_is_due(self) -> None:
        due = self.driver.scheduler.next_deadline(self.driver.now)
        if due is not None:
            self.driver.now = max(self.driver.now, due)
            self.driver.step_until_nothing_is_due()

    # ---- policies and extenders

    @rule(which=which_policy, slices=st.sampled_from([0, 1, 3, ALL, ALL]), on_probation=st.booleans())
    def another_policy_comes(self, which: int, slices: int, on_probation: bool) -> None:
        """The one that was on its way does not."""
        self.driver.reloads.prepare(policies()[which])
        self.driver.reloads.go_on(slices, on_probation=on_probation)

    @precondition(lambda self: self.driver.reloads.preparation is not None)
    @rule(slices=st.sampled_from([1, 3, ALL]), on_probation=st.booleans())
    def policy_is_prepared(self, slices: int, on_probation: bool) -> None:
        self.driver.reloads.go_on(slices, on_probation=on_probation)

    @precondition(lambda self: self.driver.reloads.trial is not None)
    @rule()
    def policy_goes_back(self) -> None:
        self.driver.reloads.go_back()

    @rule(rank=st.integers(0, len(RANKS) - 1), number=st.integers(1, 3))
    def pods_come_for_another_scheduler(self, rank: int, number: int) -> None:
        names = [name for name in ("q0", "q1", "q2") if self.driver.world.named(name) is None]
        for name in names[:number]:
            self.driver.world.make_pod(name, FOR_ANOTHER, rank)
        self.show()

    @rule(rank=st.integers(0, len(RANKS) - 1), back=st.booleans())
    def pods_lose_their_profile(self, rank: int, back: bool) -> None:
        """And may have it again."""
        for policy in (BOTH, 0, *([BOTH] if back else [])):
            self.another_policy_comes(policy, ALL, on_probation=False)
            self.pods_come_for_another_scheduler(rank, 2)
            self.driver.step(answered=False)

    @rule(name=st.sampled_from(POD_NAMES), template=st.sampled_from(PLAIN), rank=st.integers(0, len(RANKS) - 1))
    def extenders_take_their_time(self, name: str, template: int, rank: int) -> None:
        """If they are asked."""
        self.driver.world.make_pod(name, template, rank)
        self.show()
        self.driver.step(answered=False)

    @precondition(lambda self: self.driver.scheduler.asked is not None)
    @rule(all_=st.booleans())
    def extenders_answer(self, all_: bool) -> None:
        if all_:
            self.driver.answer_all()
        else:
            self.driver.answer()
