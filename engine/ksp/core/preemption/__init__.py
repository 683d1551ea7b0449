"""Preemption: which pods have to go so that a pod that fits nowhere finds room, and on which node.

    Preemption(profile, …).attempt(pod, filtered)     after "no node fits"
      eligibility    may the pod have others evicted now, and on which nodes can that help
      budgets        which pods disruption budgets protect
      search         the victims on each node, by what-if: nodes that are alike are judged once
      choice         which of the nodes
      recent         what is remembered between attempts, within bounds

What is decided is what kube-scheduler decides. No rule of a policy has code of its own here: the search takes pods
away, asks the rules, and puts pods back. Nothing in the state is different afterwards; whoever drives the core evicts
the victims, and they leave when the watch says so.
"""

from ksp.core.preemption.attempt import NOT_ELIGIBLE, NotEligible, Preempted, Preemption
from ksp.core.preemption.search import Candidate

__all__ = ["NOT_ELIGIBLE", "Candidate", "NotEligible", "Preempted", "Preemption"]
