"""`ksp apiserver` as a process."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from ksp.cli.apiserver import apiserver

NODE = """\
# one node
apiVersion: v1
kind: Node
metadata: {name: n}
status: {conditions: [{type: Ready, status: "True"}]}
"""
PODS = {
    "kind": "PodList",
    "apiVersion": "v1",
    "items": [{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}],
}


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the first line that it printed."""
    command = [sys.executable, "-m", "ksp", "apiserver", "--port", "0", *arguments]
    pipe, same = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=same, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()


def test_it_serves_what_it_loads_until_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(NODE, encoding="utf-8")
    (tmp_path / "pods.json").write_text(json.dumps(PODS), encoding="utf-8")
    ready, config = tmp_path / "ready", tmp_path / "kubeconfig"
    with running(
        *("--emulate", "1.19", "--load", str(tmp_path / "node.yaml"), "--load", str(tmp_path / "pods.json")),
        *("--ready-file", str(ready), "--kubeconfig-out", str(config)),
    ) as (process, line):
        assert "answers as Kubernetes 1.19: 1 node, 1 pod" in line
        assert process.stdout is not None
        assert process.stdout.readline() == f"kubectl --kubeconfig {config} get pods -A\n"
        url = json.loads(ready.read_text(encoding="utf-8"))["url"]
        assert url == line.split()[0]
        assert json.loads(config.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"] == url
        assert stat.S_IMODE(config.stat().st_mode) == 0o600
        assert sorted(path.name for path in tmp_path.iterdir()) == ["kubeconfig", "node.yaml", "pods.json", "ready"]
        with urllib.request.urlopen(f"{url}/api/v1/namespaces/default/pods/p", timeout=5) as answer:
            assert json.load(answer)["kind"] == "Pod"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0


def test_controllers_make_nodes_ready(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(NODE.replace('"True"', '"False"'), encoding="utf-8")
    with running("--controllers", "--load", str(tmp_path / "node.yaml")) as (process, line):
        nodes = f"{line.split()[0]}/api/v1/nodes?watch=true&timeoutSeconds=20"
        with urllib.request.urlopen(nodes, timeout=25) as answer:
            seen = (json.loads(event)["object"].get("status", {}).get("conditions") for event in answer)
            assert any(ready and ready[0]["status"] == "True" for ready in seen)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0


def test_it_ends_with_who_started_it() -> None:
    with running("--until-eof") as (process, _):
        assert process.stdin is not None
        process.stdin.write("words that it does not heed\n")
        process.stdin.close()
        assert process.wait(timeout=5) == 0


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(apiserver, [*arguments])
    assert result.exit_code != 0
    return result.output


def test_a_mistake_is_named_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(NODE + "---\n\n" + NODE.replace("name: n", "name: N_1"), encoding="utf-8")
    assert f"{file}:9: Node N_1" in refused("--load", str(file)).replace("\n", "")


def test_text_that_is_no_yaml(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("a: [1", encoding="utf-8")
    assert f"{file}:" in refused("--load", str(file))


def test_a_file_that_is_not_there() -> None:
    assert "there is no such file or folder" in refused("--load", "/no/such")


def test_other_machines_need_tokens() -> None:
    assert "--token-auth" in refused("--bind-address", "0.0.0.0")


@pytest.mark.parametrize("port", ["-1", "70000"])
def test_ports_that_do_not_exist(port: str) -> None:
    assert "--port" in refused("--port", port)


def test_a_port_that_is_taken() -> None:
    with running() as (_, line):
        port = line.split()[0].rpartition(":")[2]
        assert f"cannot listen on 127.0.0.1:{port}" in refused("--port", port)


@pytest.mark.parametrize("option", ["--kubeconfig-out", "--ready-file"])
def test_a_file_that_cannot_be_written(tmp_path: Path, option: str) -> None:
    path = tmp_path / "none" / "file"
    assert f"cannot write {path}" in refused("--port", "0", option, str(path)).replace("\n", "")


def test_the_ready_file_of_a_run_before_is_gone_while_this_one_starts(tmp_path: Path) -> None:
    ready, bad = tmp_path / "ready", tmp_path / "bad.yaml"
    ready.write_text("{}", encoding="utf-8")
    bad.write_text("a: [1", encoding="utf-8")
    refused("--ready-file", str(ready), "--load", str(bad))
    assert not ready.exists()


@pytest.mark.parametrize("text", ["{kind: List, items: 5}", "{kind: PodList, items: {a: b}}"])
def test_a_list_whose_items_are_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text, encoding="utf-8")
    assert f"{file}:1:" in refused("--load", str(file)).replace("\n", "")


def test_standard_input_is_objects_or_a_sign_of_life() -> None:
    assert "both want standard input" in refused("--until-eof", "--load", "-")
