"""What reloads do to decisions, on the embedded server:

python -m tests.cluster.reload_latency [--pods N] [--nodes N] [--changes N]

So many pods wait, and their policy is changed so many times, one of them broken; each change lets some pods through.
What is measured is the time of a decision, and how long the event loop had no turn, with and without the changes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from tests.cluster.reloads import BROKEN, Bindings, until, written

from ksp.apiserver import ApiServer
from ksp.core.scheduler import Step
from ksp.policy.assemble import Settings, assemble
from ksp.runtime import heap
from ksp.runtime.app import App, running
from ksp.runtime.options import Options
from ksp.runtime.reload.sources import FileSource

TURN = 0.001
"""Seconds after which the event loop is looked at again."""


class Watched(Bindings):
    """Counts bindings, and keeps the time of each decision."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[float] = []
        self.more = asyncio.Event()

    def decided(self, step: Step, seconds: float) -> None:
        self.decisions.append(seconds)

    def bound(self, binding: object, now: float) -> None:
        super().bound(binding, now)  # type: ignore[arg-type]
        self.more.set()

    async def until_bound(self, pods: int) -> None:
        while len(self.times) < pods:
            self.more.clear()
            await self.more.wait()


RULES = """
import "ksp:default.ksp"

/// Where pods may be.
predicate Where implements Where {
  deny "not there" when !(WHERE)
}

provider Changing {
  predicates {
    CheckNodeUnschedulable, PodFitsResources, HostName, PodFitsHostPorts, MatchNodeSelector, NoDiskConflict,
    PodToleratesNodeTaints, CheckVolumeBinding, NoVolumeZoneConflict, EvenPodsSpread, MatchInterPodAffinity, Where
  }
  priorities {
    BalancedResourceAllocation: 1, ImageLocalityPriority: 1, InterPodAffinityPriority: 1, LeastRequestedPriority: 1,
    NodeAffinityPriority: 1, EvenPodsSpreadPriority: 2, TaintTolerationPriority: 1, SelectorSpreadPriority: 1
  }
}

profile "default-scheduler" uses Changing { }
"""


def policy(where: str) -> str:
    """Nearly the default rules, and one more."""
    return RULES.replace("WHERE", where)


def node(number: int) -> dict[str, object]:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {}, "status": {"allocatable": amounts, "capacity": amounts},
    }  # fmt: skip


def pod(number: int) -> dict[str, object]:
    requests = {"cpu": "100m", "memory": "128Mi"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    meta = {"name": f"pod-{number}", "namespace": "default", "labels": {"app": f"app-{number % 20}"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is what it is for


async def longest_turn(worst: list[float]) -> None:
    """Keeps how long the event loop took for each turn."""
    while True:
        before = perf_counter()
        await asyncio.sleep(TURN)
        worst.append(perf_counter() - before - TURN)


def shown(name: str, seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    p50, p99 = (ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000 for part in (0.5, 0.99))
    return f"{name:34} n={len(ordered):6}  p50 {p50:7.2f} ms  p99 {p99:7.2f} ms  max {ordered[-1] * 1000:7.2f} ms"


async def run(pods: int, nodes: int, changes: int) -> None:
    """Without changes first, then with them. The garbage collector is set as in `ksp run`."""
    heap.prepare()
    for changed in (0, changes):
        server = ApiServer(emulate="1.36")
        await server.start()
        try:
            server.load([*map(node, range(nodes)), *map(pod, range(pods))])
            await _measure(server, pods, changed)
        finally:
            await server.stop()


async def _measure(server: ApiServer, pods: int, changes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, kubeconfig = Path(folder, "policy.ksp"), Path(folder, "kubeconfig")
        written(file, policy("false" if changes else "true"))
        written(kubeconfig, json.dumps(server.kubeconfig()))
        source, seen, turns = FileSource(str(file)), Watched(), list[float]()
        options = Options(assemble(source.read(), Settings()), str(kubeconfig), qps=0, port=None, seed=1, source=source)
        app = App(options, observers=[seen], when_synced=heap.settle)
        async with running(app):
            turning = asyncio.create_task(longest_turn(turns))
            began = perf_counter()
            await _change(app, file, changes)
            await seen.until_bound(pods)
            turning.cancel()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seconds = perf_counter() - began
        say(f"{changes} changes, {seconds:.1f} s, {len(seen.times)} of {pods} pods bound, {memory:.0f} MiB at most")
        assert seen.times == Counter(f"pod-{number}" for number in range(pods))
        say(shown("  decision", seen.decisions))
        say(shown("  event loop has no turn for", turns))
        if changes:
            for sample in app.registry.collect():
                if sample.name == "ksp_policy_reload_duration_seconds":
                    _show_stages([(each.name, dict(each.labels), each.value) for each in sample.samples])


async def _change(app: App, file: Path, changes: int) -> None:
    """The last change lets all pods through; the one in the middle is broken."""
    for change in range(changes):
        if change == changes // 2:
            written(file, BROKEN)
            app.reloading.again()
            await until(app, lambda app: app.status.status.failure is not None)
            continue
        last = change == changes - 1
        written(file, policy("true" if last else f'pod.name.endsWith("{change}")'))
        app.reloading.again()
        wanted = app.status.status.generation + 1
        await until(app, lambda app, wanted=wanted: app.status.status.generation == wanted)  # type: ignore[misc]


def _show_stages(samples: list[tuple[str, dict[str, str], float]]) -> None:
    for stage in ("vet", "assemble", "caches", "prepare", "adopt"):
        found = {
            name.rpartition("_")[2]: value
            for name, labels, value in samples
            if labels.get("stage") == stage and "le" not in labels
        }
        say(f"  {stage:10} {found['sum'] / max(1, found['count']) * 1000:8.1f} ms on average of {found['count']:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="What reloads do to decisions.")
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--changes", type=int, default=10)
    arguments = parser.parse_args()
    asyncio.run(run(arguments.pods, arguments.nodes, arguments.changes))


if __name__ == "__main__":
    main()
