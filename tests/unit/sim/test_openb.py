"""The openb trace becomes nodes and pods; rows that are not valid name file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksp.sim.openb import is_openb, load_openb
from ksp.sim.texts import ManifestError

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,524288,8,T4\n"
HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
PODS = f"""{HEADER}
late,1000,1024,0,0,,BE,Running,20,,30
early,500,512,2,1000,T4|V100M16,LS,Failed,10,25.5,12
same,500,512,1,460,,LS,Pending,20,40,
"""


def write(tmp_path: Path, nodes: str = NODES, pods: str = PODS) -> Path:
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "pods.csv").write_text(pods)
    return tmp_path


def refused(folder: Path) -> tuple[str, int, str, str]:
    with pytest.raises(ManifestError) as caught:
        load_openb(folder)
    error = caught.value
    return Path(error.file).name, error.line, error.field, error.message


def row(**values: str) -> str:
    """A file of pods with one good row, and one like it with these values."""
    names = HEADER.split(",")
    good = dict(zip(names, ("p", "1", "1", "0", "0", "", "LS", "Running", "0", "1", "0"), strict=True))
    rows = (good, good | {"name": "q"} | values)
    return HEADER + "\n" + "".join(",".join(r[name] for name in names) + "\n" for r in rows)


def test_nodes(tmp_path: Path) -> None:
    plain, gpu = load_openb(write(tmp_path)).nodes
    assert plain.metadata.labels == {"kubernetes.io/hostname": "n0"}
    assert plain.status.allocatable == {"cpu": "32000m", "memory": "262144Mi", "pods": 110}
    assert gpu.metadata.labels == {"kubernetes.io/hostname": "n1", "gpu-model": "T4"}
    assert gpu.status.allocatable == {"cpu": "96000m", "memory": "524288Mi", "nvidia.com/gpu": 8, "pods": 110}


def test_pods_come_in_order_of_arrival(tmp_path: Path) -> None:
    arrivals = load_openb(write(tmp_path)).arrivals
    assert [(arrival.pod.metadata.name, arrival.arrives, arrival.leaves) for arrival in arrivals] == [
        ("early", 10, 25.5),
        ("late", 20, None),
        ("same", 20, 40),
    ]


def test_pods(tmp_path: Path) -> None:
    gpu, plain, shared_gpu = (arrival.pod for arrival in load_openb(write(tmp_path)).arrivals)
    assert (gpu.metadata.namespace, gpu.metadata.uid, gpu.metadata.labels) == (
        "default",
        "default/early",
        {"qos": "LS"},
    )
    assert gpu.spec.containers[0].resources.requests == {"cpu": "500m", "memory": "512Mi", "nvidia.com/gpu": 2}
    assert gpu.spec.affinity is not None
    assert gpu.spec.affinity.node_affinity is not None
    required = gpu.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    (expression,) = required.node_selector_terms[0].match_expressions
    assert (expression.key, expression.operator, expression.values) == ("gpu-model", "In", ("T4", "V100M16"))
    assert plain.spec.containers[0].resources.requests == {"cpu": "1000m", "memory": "1024Mi"}
    assert plain.spec.affinity is None
    assert shared_gpu.spec.containers[0].resources.requests["nvidia.com/gpu"] == 1


def test_two_files_and_columns_in_another_order(tmp_path: Path) -> None:
    write(tmp_path, nodes="model,more,gpu,memory_mib,cpu_milli,sn\r\nG2,?,1,2,3,n\r\n")
    trace = load_openb((tmp_path / "nodes.csv", tmp_path / "pods.csv"))
    assert trace.nodes[0].status.allocatable == {"cpu": "3m", "memory": "2Mi", "nvidia.com/gpu": 1, "pods": 110}


WHOLE = "a whole number from 0 to 1000000000000 is expected, not"
SECONDS = "seconds from 0 to 1000000000000 are expected, not"


@pytest.mark.parametrize(
    ("pods", "line", "column", "message"),
    [
        (row(cpu_milli="x"), 3, "cpu_milli", f"{WHOLE} `x`"),
        (row(memory_mib="-1"), 3, "memory_mib", f"{WHOLE} `-1`"),
        (row(num_gpu=""), 3, "num_gpu", f"{WHOLE} ``"),
        (row(cpu_milli="9" * 5000), 3, "cpu_milli", f"{WHOLE} `{'9' * 40}`"),
        (row(cpu_milli="²"), 3, "cpu_milli", f"{WHOLE} `²`"),
        (row(creation_time="nan"), 3, "creation_time", f"{SECONDS} `nan`"),
        (row(deletion_time="inf"), 3, "deletion_time", f"{SECONDS} `inf`"),
        (row(creation_time="2"), 3, "deletion_time", "earlier than creation_time"),
        (row(gpu_spec="T4|"), 3, "gpu_spec", "models separated by `|` are expected, not `T4|`"),
        (row(name=""), 3, "name", "missing"),
        (row(name="p"), 3, "name", "`p` stands twice: first on line 2"),
        (row(qos="a,b"), 3, "", "12 values for 11 columns"),
        (row() + "short\n", 4, "", "1 values for 11 columns"),
    ],
)
def test_bad_rows_name_line_and_column(tmp_path: Path, pods: str, line: int, column: str, message: str) -> None:
    folder = write(tmp_path, pods=pods)
    assert refused(folder) == ("pods.csv", line, column, message)
    trace = load_openb(folder, skip_invalid=True)
    assert [arrival.pod.metadata.name for arrival in trace.arrivals][:1] == ["p"]
    assert [(error.line, error.field) for error in trace.invalid] == [(line, column)]


@pytest.mark.parametrize("skip_invalid", [False, True])
@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("", (1, "", "the header is missing: sn,cpu_milli,memory_mib,gpu,model")),
        ("sn,cpu_milli,memory_mib,model\n", (1, "gpu", "this column is missing from the header")),
        ("sn,sn,cpu_milli,memory_mib,gpu,model\n", (1, "sn", "this column stands twice in the header")),
        (NODES + '"x', (4, "", "not CSV: unexpected end of data")),
    ],
)
def test_files_that_are_no_trace(
    tmp_path: Path, nodes: str, expected: tuple[int, str, str], skip_invalid: bool
) -> None:
    with pytest.raises(ManifestError) as caught:
        load_openb(write(tmp_path, nodes), skip_invalid=skip_invalid)
    assert (caught.value.line, caught.value.field, caught.value.message) == expected


def test_files_that_are_not_text_or_not_there(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert is_openb(folder)
    (folder / "nodes.csv").write_bytes(b"sn\n\xff")
    assert refused(folder) == ("nodes.csv", 2, "", "not UTF-8 text")
    (folder / "nodes.csv").unlink()
    assert not is_openb(folder)
    assert refused(folder) == ("nodes.csv", 0, "", "cannot be read: No such file or directory")


@pytest.mark.shared
def test_the_whole_trace(shared: Path) -> None:
    trace = load_openb(shared / "traces" / "openb")
    assert (len(trace.nodes), len(trace.arrivals)) == (1523, 8152)
    times = [arrival.arrives for arrival in trace.arrivals]
    assert times == sorted(times)
    gpus = [arrival.pod.spec.containers[0].resources.requests.get("nvidia.com/gpu", 0) for arrival in trace.arrivals]
    assert gpus.count(0) == 1088
    assert gpus.count(8) == 44
