"""`ksp run` as a process, against the embedded server."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.cli.commands import ksp, written
from tests.unit.runtime.embedded import WITHIN, Server, got, kubeconfig, node, node_of, pod, pod_until, served

from ksp.apiserver.server import STATIC_USERS
from ksp.cli.run import run
from ksp.runtime import process
from ksp.runtime.app import App
from ksp.runtime.options import Options

ENGINE = Path(__file__).resolve().parents[3] / "engine"
ALONE = ("--leader-elect=false", "--secure-port=0")
LINE = re.compile(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} \S.*")


class Process:
    """A `ksp run` and what it said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def says(self, text: str) -> str:
        """The first line from here on that contains the text."""
        async with asyncio.timeout(WITHIN):
            while line := await self._line():
                if text in line:
                    return line
        raise AssertionError(f"it never said {text!r} but: {self.lines}")

    async def end(self) -> int:
        """What it exits with."""
        async with asyncio.timeout(WITHIN):
            while await self._line():
                pass
            return await self.process.wait()

    async def _line(self) -> str:
        assert self.process.stderr is not None
        line = (await self.process.stderr.readline()).decode()
        if line:
            self.lines.append(line.rstrip("\n"))
        return line


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[Process]:
    """The process; it is killed at the end if it still runs. It elects nobody and serves nothing with TLS."""
    environment = {**os.environ, "PYTHONPATH": str(ENGINE)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ksp", "run", *ALONE, *arguments, env=environment, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
async def test_it_schedules_until_a_signal_comes_and_exits_0(tmp_path: Path, which: signal.Signals) -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        path = kubeconfig(tmp_path, server)
        async with started("--kubeconfig", str(path), "-v", "2") as run:
            assert node_of(await pod_until(server, "a", node_of)) == "n1"
            await run.says("bound pod=default/a node=n1")
            run.process.send_signal(which)
            assert await run.end() == 0
    assert run.lines[-1].endswith(" stopped")
    assert all(map(LINE.fullmatch, run.lines))


async def test_the_first_lines_say_what_runs(tmp_path: Path) -> None:
    async with served(Server("1.19")) as server:
        path = kubeconfig(tmp_path, server)
        gate = "EnableEquivalenceClassCache=false"
        flags = ("--kube-api-qps", "20", "--feature-gates", gate)
        async with started("--kubeconfig", str(path), *flags) as run:
            await run.says("synced")
            run.process.terminate()
            assert await run.end() == 0
    said = "\n".join(run.lines)
    assert "scheduler=default-scheduler" in said
    assert f"feature gates {gate}" in said
    assert re.search(r"policy=ksp:default.ksp sha256=[0-9a-f]{64} unread_fields=refuse", said)
    assert "at most 20 bindings a second in the long run, 100 at once; --kube-api-qps raises it" in said
    assert re.search(rf"server={server.url} found_in=.*{path}", said)
    assert "version=v1.19" in said
    assert re.search(r"synced nodes=0 pods=0 waiting=0 seconds=\d", said)


async def test_open_bindings_finish_and_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        server.hold("/binding")
        async with started("--kubeconfig", str(kubeconfig(tmp_path, server))) as run:
            await server.until_held()
            run.process.terminate()
            await run.says("stopping open_bindings=1 open_evictions=0 at_most_seconds=10")
            assert run.process.returncode is None
            run.process.send_signal(signal.SIGINT)
            assert await run.end() == 128 + signal.SIGINT


async def test_a_server_that_is_away_is_waited_for_and_named_and_warnings_of_the_policy_are_said(
    tmp_path: Path,
) -> None:
    spare = 'predicate Spare { deny "x" when node.name == "a" }'
    text = f'import "ksp:default.ksp"\n{spare}\nprofile "p" uses DefaultProvider {{ }}\n'
    policy = written(tmp_path, {"spare.ksp": text}) / "spare.ksp"
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    async with started("--master", url, "--policy-file", str(policy)) as run:
        line = await run.says("policy warning")
        assert line.startswith("W")
        assert f'place={policy}:2 code=KSP0705 message="the predicate `Spare` is in no provider"' in line
        line = await run.says("waiting for the API server")
        assert f"server={url}" in line
        run.process.terminate()
        assert await run.end() == 0


async def test_a_token_that_is_refused_is_one_clear_line(tmp_path: Path) -> None:
    async with served(Server(tokens={"right": STATIC_USERS["admin"]})) as server:
        path = kubeconfig(tmp_path, server, token="wrong")
        async with started("--kubeconfig", str(path)) as run:
            assert await run.end() == 1
    assert run.lines[-1].startswith(f"Error: {server.url} does not accept the credentials: check the token")


async def test_a_port_that_is_taken_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        async with started("--master", "http://127.0.0.1:1", "--port", port) as run:
            assert await run.end() == 1
    assert run.lines[-1] == (f"Error: port {port} of 0.0.0.0 is in use: choose another with --port, or 0 for none")


async def test_health_and_metrics_are_served(tmp_path: Path) -> None:
    async with served() as server:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        async with started("--kubeconfig", str(kubeconfig(tmp_path, server)), "--port", str(port)) as run:
            await run.says("synced")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert (await reader.read()).endswith(b"\r\n\r\nok")
            writer.close()
            await writer.wait_closed()


# ---- what ends it before it connects


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--kubeconfig", "/nowhere"], 1, "Error: --kubeconfig: there is no file /nowhere"),
        (["--policy-file", "a.ksp", "--policy-dir", "b"], 2, "--policy-file and --policy-dir exclude each other"),
        (["--policy-dir", "b", "--algorithm-provider", "DefaultProvider"], 2, "exclude each other"),
        (["--policy-file", "/nowhere.ksp"], 1, "error[KSP0101]: cannot read the file: no such file or directory"),
        (["--policy-dir", "/nowhere"], 1, "error[KSP0101]: cannot read the folder: No such file or directory"),
        (["--algorithm-provider", "MyProvider"], 2, "'MyProvider' is not one of"),
        (["--unread-fields", "bind"], 2, "'bind' is not one of"),
        (["--kube-api-burst", "0"], 2, "0 is not in the range"),
        (["--percentage-of-nodes-to-score", "101"], 2, "101 is not in the range"),
    ],
)
def test_what_cannot_be_used_is_said_at_once(arguments: list[str], code: int, said: str) -> None:
    result = ksp("run", *arguments)
    assert result.exit_code == code
    assert said in result.output


def test_the_mistakes_of_a_policy_are_shown_as_check_shows_them(tmp_path: Path) -> None:
    path = written(tmp_path, {"bad.ksp": 'predicate P { deny "x" when nod.name == "" }\n'}) / "bad.ksp"
    result = ksp("run", "--policy-file", path)
    assert result.exit_code == 1
    assert result.stderr == ksp("check", path).stdout


async def test_a_scheduler_of_another_name_leaves_the_rest_alone(tmp_path: Path) -> None:
    async with served() as server:
        server.load([node("n1"), pod("theirs"), pod("ours", schedulerName="mine")])
        arguments = ("--kubeconfig", str(kubeconfig(tmp_path, server)), "--scheduler-name", "mine")
        async with started(*arguments) as run:
            assert node_of(await pod_until(server, "ours", node_of)) == "n1"
            run.process.terminate()
            assert await run.end() == 0
        pods = (await got(f"{server.url}/api/v1/pods"))["items"]
        assert {found["metadata"]["name"]: node_of(found) for found in pods} == {"theirs": "", "ours": "n1"}


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--scheduler-name", " "),
        ("--kube-api-qps", "nan"),
        ("--kube-api-qps", "inf"),
        ("--watch-inactivity", "nan"),
        ("--watch-inactivity", "inf"),
        ("--assumed-pod-ttl", "nan"),
        ("--assumed-pod-ttl", "-1"),
        ("--feature-gates", "EnableEquivalenceClassCache=perhaps"),
        ("--feature-gates", "VolumeScheduling=false"),
    ],
)
def test_values_that_mean_nothing_are_mistakes_on_the_command_line(flag: str, value: str) -> None:
    result = CliRunner().invoke(run, [flag, value])
    assert result.exit_code == 2
    assert f"Invalid value for '{flag}'" in result.output


@pytest.mark.parametrize(
    ("flags", "ttl"), [((), None), (("--assumed-pod-ttl", "0"), None), (("--assumed-pod-ttl", "30s"), 30.0)]
)
def test_assumed_pods_expire_only_if_told_so(
    flags: tuple[str, ...], ttl: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Options] = []
    monkeypatch.setattr(process, "run_process", given.append)
    assert CliRunner().invoke(run, flags).exit_code == 0
    (options,) = given
    assert App(options).scheduler.cache.ttl == options.assumed_ttl == ttl
