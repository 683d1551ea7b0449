"""Other policies: one is prepared in slices, adopted, perhaps on probation, and perhaps goes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.state.churn_checks import Anew
from tests.state.churn_policies import Policy, policies

from ksp.core.changes import SetPod
from ksp.core.generation import Preparation
from ksp.core.probation import Standing, Terms, Verdict
from ksp.core.scheduler import Adopted, Step
from ksp.model.info import PodInfo

if TYPE_CHECKING:
    from tests.state.churn_driver import Driver

TERMS: Final = Terms(0.5, pods=3, attempts=12, seconds=50.0)


@dataclass
class Trial:
    """What is known of a policy on probation: of each pod that was decided, whether it is denied what it had before."""

    before: Policy
    began: float
    attempts: int = 0
    denied: dict[str, bool] = field(default_factory=dict)

    def verdict(self, now: float) -> Verdict:
        pods, denied = len(self.denied), sum(self.denied.values())
        if pods >= TERMS.pods and denied / pods > TERMS.most_denied:
            return Verdict(Standing.FAILED, pods, denied)
        over = self.attempts == TERMS.attempts or now - self.began >= TERMS.seconds
        return Verdict(Standing.PASSED if over else Standing.PENDING, pods, denied)


class Reloads:
    """`policy` decides; `trial` is there while it is on probation, `preparation` while another is on its way."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.policy = policies()[0]
        self.running = 1
        self.trial: Trial | None = None
        self.preparation: tuple[Policy, Preparation] | None = None

    # ---- another policy

    def prepare(self, policy: Policy) -> None:
        scheduler = self.driver.scheduler
        self.preparation = policy, scheduler.prepare(policy.profiles, policy.extenders)

    def go_on(self, slices: int, *, on_probation: bool) -> bool:
        """So many slices are done; then the policy is adopted if it is ready."""
        assert self.preparation is not None
        policy, preparation = self.preparation
        if not any(preparation.step() for _ in range(slices)):
            return False
        self.preparation = None
        self.driver.answer_all()
        trial = Trial(self._proven(), self.driver.now) if on_probation else None
        terms = TERMS if on_probation else None
        self._adopted(policy, self.driver.scheduler.adopt(preparation.generation, self.driver.now, terms))
        self.trial = trial
        return True

    def go_back(self) -> None:
        assert self.trial is not None
        self.driver.answer_all()
        before, self.trial = self.trial.before, None
        self._adopted(before, self.driver.scheduler.go_back(self.driver.now))

    def _proven(self) -> Policy:
        if self.trial is None or self.trial.verdict(self.driver.now).standing is Standing.PASSED:
            return self.policy
        return self.trial.before

    def _adopted(self, policy: Policy, adopted: Adopted) -> None:
        driver, model = self.driver, self.driver.model
        waited, before, self.policy = [uid for uid in model.pods if model.waits(uid)], self.policy, policy
        driver.happened += 1
        self.running += 1
        model.leaving = model.reloaded(policy.names)
        assert {pod.uid for pod in adopted.left} == model.leaving.keys()
        assert adopted.came == policy.names - before.names
        assert driver.scheduler.pending()["unschedulable"] == 0, "a pod did not move"
        driver.take_effects()
        for pod in list(model.pods.values()):
            if PodInfo.of(pod).scheduler_name in adopted.came:
                driver.scheduler.on(SetPod(pod), driver.now)
        for uid in model.pods:
            if uid not in waited:
                model.follow_status(uid)
        driver.take_effects()

    # ---- probation

    def decided(self, step: Step, anew: Anew) -> None:
        """An attempt has ended so."""
        trial = self.trial
        if trial is not None and trial.attempts < TERMS.attempts:
            if step.decision.node or self._had_a_node(trial.before, step, anew):
                trial.attempts += 1
                trial.denied[step.pod.uid] = not step.decision.node
            else:
                trial.denied.pop(step.pod.uid, None)

    def _had_a_node(self, before: Policy, step: Step, anew: Anew) -> bool:
        old = Anew(self.driver.model, before.profiles, self.driver.scheduler)
        pod = old.pod(step.pod.uid)
        if pod.scheduler_name not in old.cycles or not old.decide(pod).node:
            return False
        had_a_say = any(
            each.is_interested(pod.spec) for each in before.extenders
            if each.filter_verb or each.prioritize_verb or each.preempt_verb
        )  # fmt: skip
        return not had_a_say or not anew.decide(pod).node

    def check(self) -> None:
        """The scheduler thinks the same of the policy."""
        scheduler, now = self.driver.scheduler, self.driver.now
        assert scheduler.generation.number == self.running
        assert tuple(scheduler.generation.profiles) == self.policy.profiles
        assert (scheduler.probation is None) == (self.trial is None)
        if scheduler.probation is not None and self.trial is not None:
            assert scheduler.probation.verdict(now) == self.trial.verdict(now)
