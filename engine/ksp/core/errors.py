"""Faults of ksp itself, which never look like "unschedulable"."""

from __future__ import annotations


class InternalError(Exception):
    """Something happened that the code around it rules out: a bug of ksp, not of a policy, a user or a cluster."""


class StateError(InternalError):
    """The cluster's state was told of something twice, or to change something that it does not have."""


class IllegalMoveError(InternalError):
    """A state machine was asked for a move that its table does not have."""

    def __init__(self, machine: str, subject: str, state: str, event: str) -> None:
        super().__init__(f"{machine}: {event} of {subject} which is {state}")
        self.machine = machine
        self.subject = subject
        self.state = state
        self.event = event
