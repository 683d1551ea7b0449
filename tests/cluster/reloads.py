"""Policies that change, and schedulers that follow them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.cluster.brisk import BriskTimers

from ksp.core.scheduler import Step
from ksp.model.info import PodInfo
from ksp.policy.assemble import Policy, Settings, assemble
from ksp.runtime.app import App
from ksp.runtime.observer import Binding, Observer
from ksp.runtime.options import Options
from ksp.runtime.reload.sources import FileSource, FolderSource

BROKEN = 'predicate Broken implements Broken {\n  deny "no" when nod.name == ""\n}\n'


def rules(*schedulers: str, where: str = "", extra: str = "") -> str:
    """A policy for pods that ask for room, on nodes of which the condition `where` holds."""
    condition = f'  deny "not there" when !({where})\n' if where else ""
    profiles = "".join(f'profile "{name}" uses Rooms {{ }}\n' for name in schedulers)
    return (
        'import "ksp:resources.ksp"\nimport "ksp:nodes.ksp"\n\n'
        "/// Where pods may be.\npredicate Where implements Where {\n"
        f'  deny "no name" when node.name == ""\n{condition}}}\n\n'
        "provider Rooms {\n  predicates { PodFitsResources, MatchNodeSelector, Where }\n"
        "  priorities { LeastRequestedPriority: 1 }\n}\n"
        f"{profiles}{extra}"
    )


class Bindings:
    """An observer: how often each pod was bound, by name, and faults."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self.faults: list[str] = []

    def decided(self, step: Step, seconds: float) -> None: ...

    def bound(self, binding: Binding, now: float) -> None:
        self.times[binding.pod.name] += 1

    def not_bound(self, binding: Binding, message: str, now: float) -> None: ...

    def wait_failed(self, pod: PodInfo, message: str) -> None: ...

    def fault(self, where: str, pod: PodInfo | None) -> None:
        self.faults.append(where)


def app_of(
    source: FileSource | FolderSource, kubeconfig: Path, *, observers: Sequence[Observer] = (), **options: Any
) -> App:
    """A scheduler that begins with what the source has."""
    policy: Policy = assemble(source.read(), Settings())
    given = {"port": None, "seed": 1, "qps": 0.0, "source": source} | options
    return App(Options(policy, str(kubeconfig), **given), observers=observers, timers=BriskTimers(), environ={})


def written(path: Path, text: str) -> None:
    """The file gets another text as editors do it: another file takes its place."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.rename(path)


def mounted(folder: Path, number: int, files: dict[str, str]) -> None:
    """The folder shows these files as the kubelet does it with a ConfigMap."""
    data = folder / f"..2024_{number}"
    data.mkdir(parents=True)
    for name, text in files.items():
        (data / name).write_text(text)
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(Path("..data") / name)
    new = folder / "..data_tmp"
    new.symlink_to(data.name)
    new.rename(folder / "..data")


async def until(app: App, holds: Callable[[App], bool]) -> None:
    """Returns when the status of the app is so; it is looked at whenever it says something else."""
    changed, before = asyncio.Event(), app.status.changed

    def tell() -> None:
        before()
        changed.set()

    app.status.changed = tell
    try:
        async with asyncio.timeout(30):
            while not holds(app):
                changed.clear()
                await changed.wait()
    finally:
        app.status.changed = before
