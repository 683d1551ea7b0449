"""Everything is told a second time: nothing may come of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.state.churn_objects import with_metadata, with_status
from tests.state.churn_world import CLAIMS, VOLUMES

from ksp.core.changes import SetNode, SetObject, SetPod
from ksp.model.pod import PodCondition

if TYPE_CHECKING:
    from tests.state.churn_driver import Driver


def tell_again(driver: Driver) -> None:
    """Everything is told a second time, under other versions, pods that wait with what the scheduler itself has
    written of why they do: nothing comes of it."""
    driver.answer_all()
    before, generation = _picture(driver), driver.scheduler.state.generation
    for known in list(driver.model.pods.values()):
        again = with_metadata(known, resource_version="again")
        if known.metadata.uid not in driver.model.placed():
            said = PodCondition(type="PodScheduled", status="False", message=str(driver.happened))
            again = with_status(again, conditions=(said,))
        driver.tell(SetPod(again))
    for row in list(driver.model.nodes.values()):
        driver.tell(SetNode(with_metadata(row, resource_version="again")))
    for (kind, namespace, name), obj in list(driver.model.others.items()):
        changes = {} if kind in (VOLUMES, CLAIMS) else {"resource_version": "again"}
        driver.tell(SetObject(kind, namespace, name, with_metadata(obj, **changes)))
    assert _picture(driver) == before
    assert driver.scheduler.state.generation == generation


def _picture(driver: Driver) -> object:
    """Who waits where, since when, and for what."""
    queue = driver.scheduler.queue
    waiting = [(q.uid, q.place, q.added, q.attempts, q.unschedulable_by) for q in queue]
    claims = {name: list(pods) for name, pods in queue.nominations.nodes().items()}
    return waiting, claims, dict(queue.incoming), driver.scheduler.pending(), driver.scheduler.cache_size()
