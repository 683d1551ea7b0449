"""The caches that a new policy needs: kinds that nobody watched before are watched, and known, before it decides.

Kinds that are not read any more stay watched: the policy after next may read them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ksp.kube.timers import Timers
from ksp.kube.watch.informer import Informer
from ksp.kube.watch.resources import RESOURCES, key_of
from ksp.kube.watch.shared_informers import SharedInformers
from ksp.model.pod import Pod
from ksp.policy.profile import Profile
from ksp.runtime.changes import Deliver, handlers, kinds_of

WITHIN: Final = 60.0
"""Seconds in which the caches have to be in sync."""
TOGETHER: Final = 200


class WatchedKinds:
    """The informers, as reloads need them. `deliver` takes changes to the core."""

    def __init__(self, informers: SharedInformers, deliver: Deliver, timers: Timers) -> None:
        self._informers = informers
        self._deliver = deliver
        self._timers = timers

    async def watch(self, profiles: Iterable[Profile]) -> str:
        """Returns when everything is known that these read; why it is not, after a while, "" if it is."""
        wanted = kinds_of(profiles)
        new = [kind for kind in wanted if kind not in self._informers.kinds]
        for kind, handler in handlers(self._deliver, new):
            self._informers.add(RESOURCES[kind]).add_handler(handler)
        waiting = [self._informers.informer(kind) for kind in wanted]
        synced = asyncio.ensure_future(_all_synced(waiting))
        patience = asyncio.ensure_future(self._timers.sleep(WITHIN))
        try:
            await asyncio.wait({synced, patience}, return_when=asyncio.FIRST_COMPLETED)
            if synced.done():
                return ""
            plurals = {each.resource.plural for each in waiting}
            return "; ".join(why for plural, why in self._informers.waiting_for() if plural in plurals)
        finally:
            for task in (synced, patience):
                task.cancel()
            await asyncio.gather(synced, patience, return_exceptions=True)

    def pods(self) -> Iterator[list[Pod]]:
        """All that are known, as they are when asked for, in lists of a few."""
        lister = self._informers.informer("Pod").lister
        keys = [key_of(pod.metadata) for pod in lister.list()]
        for start in range(0, len(keys), TOGETHER):
            found = (lister.get(key) for key in keys[start : start + TOGETHER])
            yield [pod for pod in found if pod is not None]


async def _all_synced(informers: Iterable[Informer[Any]]) -> None:
    for informer in informers:
        await informer.wait_for_sync()
