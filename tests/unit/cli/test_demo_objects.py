"""A trace becomes objects that an API server takes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.commands import written

from ksp.apiserver.server import ApiServer
from ksp.cli.demo_objects import write_trace

NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,64000,262144,2,V100M16\nnode-1,96000,786432,0,\n"
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-0,12000,16384,1,1000,,LS,Running,0,12537496,0
pod-1,6000,12288,0,0,,LS,Running,5,12902960,5
pod-2,1000,1024,0,0,,LS,Running,9,12902960,9
"""


def test_a_trace_becomes_a_list_that_the_server_takes(tmp_path: Path) -> None:
    folder = written(tmp_path / "trace", {"nodes.csv": NODES, "pods.csv": PODS})
    file = tmp_path / "trace.json"
    uids = write_trace(folder, 2, file)
    items = json.loads(file.read_text())["items"]
    assert [(item["kind"], item["metadata"]["name"]) for item in items] == [
        ("Node", "node-0"), ("Node", "node-1"), ("Pod", "pod-0"), ("Pod", "pod-1"),
    ]  # fmt: skip
    assert {item["metadata"]["uid"] for item in items if item["kind"] == "Pod"} == uids
    server = ApiServer("1.36")
    server.load(items)
    assert server.state.store.counts()["pods"] == 2
