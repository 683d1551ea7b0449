"""SIGHUP, and a policy file, of a real `ksp run`."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.cluster.reloads import BROKEN, rules, written
from tests.unit.cli.test_run import started
from tests.unit.runtime.embedded import created, kubeconfig, node, node_of, pod, pod_until, served


async def test_sighup_has_the_policy_read_again_and_a_broken_one_is_told_of(tmp_path: Path) -> None:
    file = tmp_path / "policy.ksp"
    file.write_text(rules("default-scheduler"))
    async with served() as server:
        server.load([node("n1")])
        flags = ("--kubeconfig", str(kubeconfig(tmp_path, server)), "--policy-file", str(file))
        async with started(*flags) as run:
            await run.says("synced")
            run.process.send_signal(signal.SIGHUP)
            await run.says("the policy is read again, and is as it was")
            written(file, BROKEN)
            run.process.send_signal(signal.SIGHUP)
            await run.says("the policy is not reloaded, the last good one stays stage=check")
            await run.says(f"{file}:2:18")
            await created(server, pod("a"))
            assert node_of(await pod_until(server, "a", node_of)) == "n1"
            run.process.terminate()
            assert await run.end() == 0
