from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner
from tests.unit.kube.leader_election.test_lease import LEASES, client_of
from tests.unit.runtime.access.serving import TOKENS, Authority
from tests.unit.runtime.embedded import Server, app_of, kubeconfig, node, node_of, pod, pod_until, served

from ksp.cli.status import Asked, _by_lease, _by_url, _scheduler, status
from ksp.cli.status_report import as_text, problems, seen_at, seen_in, to_json
from ksp.kube.errors import ApiError
from ksp.kube.http.reader import MalformedError
from ksp.kube.leader_election.lease import lease_of
from ksp.policy.configuration.leader_election import LeaderElection
from ksp.runtime.app import running
from ksp.runtime.serving_options import ServingOptions
from ksp.runtime.status import ANNOTATION, Failure, ProfileStatus, Status

ENGINE = Path(__file__).resolve().parents[3] / "engine"
NOW = dt.datetime(2026, 5, 4, 12, 0, 0, tzinfo=dt.UTC)
STATUS = Status(
    "host_1", "1.0", "2026-05-04T10:00:00Z", leading=True, generation=3, policy="p.ksp", source_kind="ConfigMap",
    source="kube-system/p", sha256="ab", loaded_at="2026-05-04T11:00:00Z", profiles=(ProfileStatus("ksp", 15, 9),),
)  # fmt: skip
FAILED = msgspec.structs.replace(STATUS, failure=Failure("2026-05-04T11:30:00Z", "check", "p.ksp:1: no\x1b[2J", "cd"))


def lease(status: Status | None, holder: str = "host_1", renewed: str = "2026-05-04T11:59:58.000000Z") -> Any:
    annotations = {} if status is None else {ANNOTATION: msgspec.json.encode(status).decode()}
    spec = {
        "holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": "2026-05-04T10:00:01.000000Z",
        "renewTime": renewed,
    }  # fmt: skip
    body = {"kind": "Lease", "metadata": {"annotations": annotations}, "spec": spec}
    return seen_in(lease_of(json.dumps(body).encode()), "kube-system/ksp", NOW)


def test_a_healthy_leader() -> None:
    seen = lease(STATUS)
    assert problems(seen) == []
    assert as_text(seen).splitlines() == [
        "lease         kube-system/ksp",
        "leader        host_1",
        "leads since   2026-05-04T10:00:01.000000Z",
        "renewed       2.0 s ago (holds for 15 s)",
        "scheduler     host_1, decides",
        "ksp           1.0, since 2026-05-04T10:00:00Z",
        "generation    3",
        "policy        p.ksp",
        "source        ConfigMap kube-system/p",
        "sha256        ab",
        "loaded        2026-05-04T11:00:00Z",
        "profiles      ksp (15 predicates, 9 priorities)",
        "last failure  none",
    ]
    told = json.loads(to_json(seen))
    assert (told["healthy"], told["lease"]["holder"], told["lease"]["renewedSecondsAgo"]) == (True, "host_1", 2.0)
    assert told["status"]["generation"] == 3
    assert told["status"]["profiles"] == [{"name": "ksp", "predicates": 15, "priorities": 9}]


def test_a_policy_that_was_not_taken_is_a_problem() -> None:
    seen = lease(FAILED)
    assert problems(seen) == ["a newer policy was not taken"]
    assert "last failure  2026-05-04T11:30:00Z, check: p.ksp:1: no [2J" in as_text(seen).splitlines()
    assert json.loads(to_json(seen))["healthy"] is False


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        (lease(None, holder=""), "nobody leads"),
        (lease(STATUS, renewed="2026-05-04T11:59:44.000000Z"), "the lease was renewed 16 s ago, and holds for 15 s"),
        (seen_at(b'{"identity":"a","version":"1","startedAt":"x"}'), "it has no policy yet"),
    ],
)
def test_what_else_is_a_problem(seen: Any, problem: str) -> None:
    assert [each[: len(problem)] for each in problems(seen)] == [problem]


def test_what_stands_in_the_lease_of_another_holder_does_not_count() -> None:
    assert lease(STATUS, holder="host_2").status is None


def test_a_time_that_cannot_be_read_is_no_problem() -> None:
    seen = lease(STATUS, renewed="now")
    assert problems(seen) == []
    assert "renewed       at an unknown time" in as_text(seen)


def test_what_is_no_status_is_said() -> None:
    with pytest.raises(MalformedError, match="the status cannot be read"):
        seen_at(b"<html>")


# ---- to whom credentials go


def asked(url: str, **fields: Any) -> Asked:
    defaults: dict[str, Any] = {
        "kubeconfig": None, "master": None, "namespace": "kube-system", "name": "ksp", "token": None, "authority": None,
        "insecure": False,
    }  # fmt: skip
    return Asked(url, **{**defaults, **fields})


async def test_credentials_of_a_kubeconfig_go_only_where_the_certificate_is_looked_at(tmp_path: Path) -> None:
    async with served(Server(tokens=TOKENS)) as server:
        path = str(kubeconfig(tmp_path, server, "admin"))
    assert _scheduler(asked("https://x:1", kubeconfig=path)).user.authorization == "Bearer admin"
    assert _scheduler(asked("https://x:1", kubeconfig=path, token="t")).user.authorization == "Bearer t"
    insecure = _scheduler(asked("https://x:1", kubeconfig=path, insecure=True))
    assert (insecure.user.authorization, insecure.trust.verify) == (None, False)
    assert _scheduler(asked("x:1", insecure=True, token="t")).user.authorization == "Bearer t"
    assert _scheduler(asked("http://127.0.0.1:1", kubeconfig=path, token="t")).user.authorization is None


# ---- the command


async def ksp_status(*arguments: str, **environment: str) -> tuple[int, str, str]:
    variables = {**os.environ, "PYTHONPATH": str(ENGINE), "KUBECONFIG": "/nowhere", **environment}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ksp", "status", *arguments, env=variables,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def in_this_process(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """The same, but for the start of a process."""
    told = {"KUBECONFIG": "/nowhere", **environment}
    result = await asyncio.to_thread(CliRunner().invoke, status, arguments, env=told)
    return result.exit_code, result.stdout, result.stderr


async def test_it_reads_the_lease_of_the_scheduler_that_leads(tmp_path: Path) -> None:
    election = LeaderElection(resource_name="ksp")
    async with served() as server:
        server.load([node("n1"), pod("a")])
        app = app_of(server, leader_election=election, identity="first")
        path = str(kubeconfig(tmp_path, server))
        async with running(app):
            await pod_until(server, "a", node_of)
            app.status.failed("check", "p.ksp:1: no", "cd")
            code, out, _ = await ksp_status("--kubeconfig", path, "--leader-elect-resource-name", "ksp", "--json")
        told = json.loads(out)
        assert (code, told["lease"]["holder"], told["status"]["generation"]) == (3, "first", 1)
        assert told["status"]["failure"]["message"] == "p.ksp:1: no"
        async with client_of(server.port) as client:
            spec: Mapping[str, Any] = json.loads((await client.request("GET", f"{LEASES}/ksp")).body)
        assert spec["spec"]["holderIdentity"] == ""
        assert ANNOTATION not in spec["metadata"].get("annotations", {})


async def test_it_asks_a_scheduler_by_its_address(tmp_path: Path) -> None:
    authority = Authority()
    cert, key = authority.pair(tmp_path, "ksp", "127.0.0.1")
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pem)
    serving = ServingOptions("127.0.0.1", 0, tls_cert_file=str(cert), tls_private_key_file=str(key))
    async with served(Server(tokens=TOKENS)) as server:
        path = kubeconfig(tmp_path, server, "system:kube-scheduler")
        async with running(app_of(server, kubeconfig=str(path), master=None, serving=serving)) as app:
            url = f"https://127.0.0.1:{app.secure_port}"
            code, out, err = await in_this_process("--url", url, "--certificate-authority", str(ca), KSP_TOKEN="admin")
            assert (code, err) == (0, "")
            assert "generation    1" in out.splitlines()
            with pytest.raises(ApiError, match='User "system:anonymous" cannot get path "/policyz"'):
                await _by_url(asked(url, insecure=True))
            code, _, err = await in_this_process("--url", url, "--insecure-skip-tls-verify")
            assert (code, err.strip().endswith("the certificate is not looked at: give --token")) == (1, True)
            code, _, err = await in_this_process("--url", url)
            assert code == 1
            assert "is not trusted" in err
            assert "--certificate-authority" in err


async def test_no_lease_is_said_with_what_to_do(tmp_path: Path) -> None:
    async with served() as server:
        path = str(kubeconfig(tmp_path, server))
        with pytest.raises(click.ClickException, match="there is no lease kube-system/ksp: no scheduler is elected"):
            await _by_lease(asked("", kubeconfig=path))
        with pytest.raises(click.ClickException, match="there is no lease kube-system/ksp"):
            await _by_lease(asked("", master=f"http://127.0.0.1:{server.port}"))
