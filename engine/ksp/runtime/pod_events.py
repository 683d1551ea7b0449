"""Events of pods, as the loop tells of them, for the recorder: who speaks is the scheduler that the pod names; of a
victim, the one that the pod names for which it has to go."""

from __future__ import annotations

from ksp.kube.events.recorder import EventRecorder
from ksp.model.info import PodInfo


class PodEvents:
    """A `Recorder` of `ksp.runtime.effects`."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def scheduled(self, pod: PodInfo, node: str) -> None:
        self._recorder.scheduled(pod, node)

    def failed_scheduling(self, pod: PodInfo, message: str) -> None:
        self._recorder.failed_scheduling(pod, message)

    def preempted(self, victim: PodInfo, preemptor: PodInfo, node: str) -> None:
        self._recorder.preempted(victim, preemptor, node)

    def warned(self, pod: PodInfo, reason: str, message: str) -> None:
        self._recorder.event(pod, "Warning", reason, "Scheduling", message, pod.scheduler_name)
