from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.kube.certificates import Authority
from tests.unit.kube.plugins import credential, plugin, script
from tests.unit.kube.servers import serving, who
from tests.unit.kube.timers import VirtualTimers, settle

from ksp.kube.auth.config import cluster_of
from ksp.kube.auth.credentials import Issued, User
from ksp.kube.auth.exec_plugin import VERSIONS, ExecPlugin
from ksp.kube.errors import ConfigError
from ksp.kube.http.client import Client


def prints(folder: Path, output: str) -> ExecPlugin:
    return plugin(script(folder / "p", f"print({output!r})"))


async def test_a_token(tmp_path: Path) -> None:
    output = credential(token="abc\n", expirationTimestamp="2020-01-01T01:00:00.5+01:00")
    assert await prints(tmp_path, output).issue() == Issued("abc", expires=1577836800.5)


async def test_a_certificate(tmp_path: Path) -> None:
    issued = await prints(tmp_path, credential(clientCertificateData="c", clientKeyData="k")).issue()
    assert issued.pair is not None
    assert (issued.token, issued.pair.certificate, issued.pair.key, issued.expires) == (None, b"c", b"k", None)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("hello", "printed no ExecCredential, but 6 bytes that are no JSON"),
        ("", "printed no ExecCredential, but 1 bytes that are no JSON"),
        ("[" * 100_000, "printed no ExecCredential"),
        ("[]", "JSON that is no ExecCredential"),
        ("null", "JSON that is no ExecCredential"),
        ('{"kind": "Status"}', "JSON that is no ExecCredential"),
        ('{"kind": "ExecCredential"}', "answers in version None"),
        (
            credential(token="a").replace("/v1", "/v1beta1"),
            "answers in version .*/v1beta1, the kubeconfig asks for .*/v1;",
        ),
        (credential(), "neither a token nor a client certificate"),
        (credential(token=""), "neither a token nor a client certificate"),
        (credential(token="a").replace('{"token": "a"}', "7"), "neither a token"),
        (credential(token="a").replace('"a"', "7"), "a token that is not text"),
        (credential(token="a b"), "a token is one word"),
        (credential(clientKeyData="a"), "only one of clientCertificateData and clientKeyData"),
        (credential(token="a", expirationTimestamp="tomorrow"), "no time: Invalid RFC3339"),
        (credential(token="a", expirationTimestamp="2020-13-01T00:00:00Z"), "no time"),
    ],
)
async def test_output_of_no_use(tmp_path: Path, output: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^the plugin .*{message}") as caught:
        await prints(tmp_path, output).issue()
    assert len(str(caught.value)) < 600


async def test_a_plugin_that_fails(tmp_path: Path) -> None:
    path = script(tmp_path / "p", "import sys; print('log in\\nfirst', file=sys.stderr); sys.exit(3)")
    with pytest.raises(ConfigError, match=r"^the plugin failed with exit code 3: log in first$"):
        await plugin(path).issue()


async def test_what_a_plugin_prints_is_never_repeated_for_it_may_be_a_token(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="printed no ExecCredential") as caught:
        await prints(tmp_path, "eyJhbGciOi.s3cr3t.x").issue()
    assert "s3cr3t" not in str(caught.value)
    path = script(tmp_path / "q", "import sys; print('s3cr3t'); sys.exit(3)")
    with pytest.raises(ConfigError, match=r"failed with exit code 3: it says nothing on its standard error$"):
        await plugin(path).issue()


@pytest.mark.parametrize(
    ("complaint", "told"),
    [
        ("GET /x Authorization: Bearer s3cr3t", "GET /x Authorization: ..."),
        ("id_token=s3cr3t expired", "id_token=... expired"),
        ('{"error": "no", "refresh_token": "s3cr3t"}', '{"error": "no", "refresh_token": ...}'),
        ("password : s3cr3t", "password : ..."),
        ("AWS_SECRET_ACCESS_KEY=s3cr3t", "AWS_SECRET_ACCESS_KEY=..."),
        ("got eyJhbGciOiJSUzI1NiJ9.s3cr3t.s3cr3t", "got ..."),
        ("-----BEGIN EC PRIVATE KEY-----\ns3cr3t\n", "..."),
        ("the token has expired; log in again", "the token has expired; log in again"),
        ("no key for this profile: log in", "no key for this profile: log in"),
    ],
)
async def test_secrets_in_the_complaint_of_a_plugin_are_left_out(tmp_path: Path, complaint: str, told: str) -> None:
    path = script(tmp_path / "p", f"import sys; print({complaint!r}, file=sys.stderr); sys.exit(1)")
    with pytest.raises(ConfigError) as caught:
        await plugin(path).issue()
    assert str(caught.value) == f"the plugin failed with exit code 1: {told}"


async def test_a_plugin_that_complains_much_before_it_answers(tmp_path: Path) -> None:
    source = f"import sys\nprint('debug ' * 50_000, file=sys.stderr)\nprint({credential(token='abc')!r})"
    assert (await plugin(script(tmp_path / "p", source)).issue()).token == "abc"


async def test_a_plugin_that_prints_without_end(tmp_path: Path) -> None:
    path = script(tmp_path / "p", "while True: print('x' * 10_000)")
    with pytest.raises(ConfigError, match="printed more than 1048576 bytes"):
        await plugin(path).issue()


@asynccontextmanager
async def hanging(folder: Path) -> AsyncGenerator[tuple[Path, asyncio.StreamReader], None]:
    """A plugin that waits for a child, and what both hold the other end of."""
    fifo = folder / "alive"
    os.mkfifo(fifo)
    path = folder / "p"
    path.write_text(f"#!/bin/sh\nexec 9>{fifo}\necho started >&9\nsleep 1000 &\nwait\n")
    path.chmod(0o755)
    alive = asyncio.StreamReader()
    with os.fdopen(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb") as end:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(alive), end
        )
        async with asyncio.timeout(20):
            yield path, alive
        transport.close()


async def test_a_plugin_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    async with hanging(tmp_path) as (path, alive):
        with pytest.raises(ConfigError, match=r"did not end within 0\.5 seconds"):
            await plugin(path, longest_run=0.5).issue()
        assert await alive.read() in {b"started\n", b""}  # nobody holds the other end any more


async def test_a_process_that_a_plugin_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    """It is in a session of its own, so it cannot be ended, and it holds the plugin's output open."""
    left, path = tmp_path / "pid", tmp_path / "p"
    path.write_text(f"#!/bin/sh\nsetsid sleep 1000 &\necho $! > {left}\necho '{credential(token='abc')}'\n")
    path.chmod(0o755)
    try:
        async with asyncio.timeout(20):
            with pytest.raises(ConfigError, match="ended, but left a process behind that holds its output open"):
                await plugin(path, longest_run=1.0).issue()
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)


async def test_a_plugin_whose_caller_gives_up_is_ended_with_its_children(tmp_path: Path) -> None:
    async with hanging(tmp_path) as (path, alive):
        issuing = asyncio.create_task(plugin(path).issue())
        assert await alive.readline() == b"started\n"
        issuing.cancel()
        await asyncio.wait([issuing])
        assert issuing.cancelled()
        assert await alive.read() == b""


async def test_a_plugin_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the plugin cannot be started: No such file or directory; install it"):
        await plugin(tmp_path / "p").issue()
    with pytest.raises(ConfigError, match=r"No such file or directory; curl it from there$"):
        await replace(plugin(tmp_path / "p"), hint="curl it\nfrom there").issue()


async def test_a_plugin_that_may_not_run(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("x")
    with pytest.raises(ConfigError, match="cannot be started: Permission denied"):
        await plugin(tmp_path / "p").issue()


async def test_a_certificate_from_a_plugin_is_renewed(tmp_path: Path) -> None:
    ours, theirs = Authority(), Authority()
    timers = VirtualTimers()
    said = tmp_path / "said"

    def say(name: str, expires: str) -> None:
        certificate, key = (part.decode() for part in theirs.client(name))
        said.write_text(credential(clientCertificateData=certificate, clientKeyData=key, expirationTimestamp=expires))

    say("one", "2020-01-01T00:00:02Z")
    user = User(issuer=plugin(script(tmp_path / "p", f"print(open({str(said)!r}).read())")))
    async with (
        serving(who, ours.server(clients=theirs)) as cluster,
        Client(replace(cluster, trust=ours.trust, user=user), timers, clock=timers) as client,
    ):
        assert (await client.request("GET", "/x")).body == b"one"
        say("two", "2020-01-01T00:00:04Z")
        await timers.advance(2)
        assert (await client.request("GET", "/x")).body == b"two"
        await settle()
        assert all(pool.closed for pool in client._retired)


# --- the entry in the kubeconfig -------------------------------------------------------------------------------------


def configured(base: Path, entry: object, **cluster: object) -> ExecPlugin:
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://k.example", **cluster}}],
        "users": [{"name": "u", "user": {"exec": entry}}],
    }
    issuer = cluster_of(document, "test", base).user.issuer
    assert isinstance(issuer, ExecPlugin)
    return issuer


async def test_what_a_plugin_is_given(tmp_path: Path) -> None:
    report = "import json, os, sys\nprint(json.dumps([sys.argv[1:], dict(os.environ), sys.stdin.read()]))"
    script(tmp_path / "bin", report)
    found = configured(
        tmp_path,
        {
            "command": "./bin",
            "apiVersion": VERSIONS[1],
            "args": ["get-token", "--cluster", "a b"],
            "env": [{"name": "AWS_PROFILE", "value": "prod"}, {"name": "EMPTY", "value": ""}],
            "provideClusterInfo": True,
            "interactiveMode": "IfAvailable",
        },
        **{
            "certificate-authority-data": "LS0tLS1CRUdJTiA=",
            "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
        },
    )
    with pytest.raises(
        ConfigError, match=rf"test: .*user `u`: `exec`: the plugin bin printed JSON|{tmp_path}.*the plugin bin"
    ):
        await found.issue()
    process = await asyncio.create_subprocess_exec(
        *found.arguments, env=found.environment, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    arguments, environment, stdin = json.loads(output)
    assert (arguments, environment["AWS_PROFILE"], environment["EMPTY"], stdin) == (
        ["get-token", "--cluster", "a b"],
        "prod",
        "",
        "",
    )
    assert environment["PATH"] == os.environ["PATH"]
    assert json.loads(environment["KUBERNETES_EXEC_INFO"]) == {
        "apiVersion": VERSIONS[1],
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://k.example",
                "certificate-authority-data": "LS0tLS1CRUdJTiA=",
                "config": {"audience": "x"},
            },
        },
    }


def test_the_command_is_looked_for_where_the_kubeconfig_says(tmp_path: Path) -> None:
    for command, found in [
        ("aws", "aws"),
        ("./bin/aws", str(tmp_path / "bin" / "aws")),
        (sys.executable, sys.executable),
    ]:
        assert configured(tmp_path, {"command": command, "apiVersion": VERSIONS[0]}).arguments == (found,)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([], "`exec` has to be a map"),
        ({"apiVersion": VERSIONS[0]}, "`exec`: `command` is missing"),
        ({"command": "aws"}, "`exec`: `apiVersion` is missing"),
        ({"command": ["aws"], "apiVersion": VERSIONS[0]}, "`command` has to be text"),
        (
            {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1alpha1"},
            "v1alpha1 is not supported; .*/v1 and .*/v1beta1 are",
        ),
        ({"command": "aws", "apiVersion": VERSIONS[0], "args": "get-token"}, "`args` has to be a list of texts"),
        ({"command": "aws", "apiVersion": VERSIONS[0], "args": [1]}, "`args` has to be a list of texts"),
        ({"command": "aws", "apiVersion": VERSIONS[0], "env": {"A": "b"}}, "`env` has to be a list of name and value"),
        ({"command": "aws", "apiVersion": VERSIONS[0], "env": [{"value": "b"}]}, "`name` is missing"),
        ({"command": "aws", "apiVersion": VERSIONS[0], "env": [{"name": "A", "value": 1}]}, "`value` has to be text"),
        ({"command": "aws", "apiVersion": VERSIONS[0], "interactiveMode": "Always"}, "needs a person at a terminal"),
    ],
)
def test_entries_of_no_use(tmp_path: Path, entry: object, message: str) -> None:
    with pytest.raises(ConfigError, match=f"user `u`: .*{message}"):
        configured(tmp_path, entry)
