"""The openb trace (a production GPU cluster) as Kubernetes objects, in order of arrival.

Two CSV files with a header; columns in any order, others are not looked at. Numbers are whole unless said.

nodes.csv: `sn` name, `cpu_milli`, `memory_mib`, `gpu` number of GPUs, `model` their type (empty without GPU).
pods.csv: `name`, `cpu_milli`, `memory_mib`, `num_gpu`, `gpu_spec` GPU types that will do, separated by `|` (empty:
any), `creation_time` and `deletion_time` in seconds (decimals allowed; an empty deletion time: the pod stays), and
`qos` if it is there.

A GPU is the extended resource `nvidia.com/gpu`, always a whole one: shares of a GPU (`gpu_milli`) are rounded up to
it. A node's GPU type is its label `gpu-model`, and `gpu_spec` a required node affinity to it. A node takes 110 pods,
the kubelet's default. Pods are in the namespace `default`; `qos` becomes a label. The trace's own outcomes
(`pod_phase`, `scheduled_time`) are not read: every pod arrives as pending.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ksp.model.decode import convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.sim.texts import MAX_BYTES, ManifestError, read_bytes

MAX_PODS = 110
GPU = "nvidia.com/gpu"
GPU_MODEL = "gpu-model"

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_spec", "creation_time", "deletion_time",
)  # fmt: skip
_MOST = 10**12

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod with the seconds at which it arrives and leaves (None: it stays)."""

    pod: Pod
    arrives: float
    leaves: float | None


@dataclass(slots=True)
class OpenbTrace:
    """Nodes in the file's order, pods in order of arrival, and what is wrong with the rows that were left out."""

    nodes: list[Node] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    invalid: list[ManifestError] = field(default_factory=list)


def is_openb(folder: Path) -> bool:
    """Whether this is a folder that `load_openb` reads."""
    return (folder / "nodes.csv").is_file() and (folder / "pods.csv").is_file()


def load_openb(source: Path | tuple[Path, Path], *, skip_invalid: bool = False) -> OpenbTrace:
    """Reads a folder with nodes.csv and pods.csv, or these two files. Raises ManifestError, its field the column, for
    the first row that is not valid; with `skip_invalid` goes on without such rows, and raises for a file or header.
    """
    nodes, pods = source if isinstance(source, tuple) else (source / "nodes.csv", source / "pods.csv")
    trace = OpenbTrace()
    invalid = trace.invalid if skip_invalid else None
    trace.nodes.extend(_converted(nodes, _NODE_COLUMNS, _node, invalid))
    trace.arrivals.extend(_converted(pods, _POD_COLUMNS, _arrival, invalid))
    trace.arrivals.sort(key=lambda arrival: arrival.arrives)
    return trace


class _ColumnError(Exception):
    """What is wrong with one column of a row."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


def _converted(
    file: Path,
    columns: tuple[str, ...],
    convert_row: Callable[[dict[str, str]], T],
    invalid: list[ManifestError] | None,
) -> Iterator[T]:
    """Each row of a file as what it stands for; the first column is the row's name, which stands once."""
    lines: dict[str, int] = {}
    for line, row in _rows(file, columns):
        try:
            _check_row(row, columns[0], lines)
            value = convert_row(row)
        except _ColumnError as error:
            mistake = ManifestError(str(file), line, error.column, error.message)
            if invalid is None:
                raise mistake from None
            invalid.append(mistake)
            continue
        lines[row[columns[0]]] = line
        yield value


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file by column, with the line on which each ends. Raises ManifestError for what is no row."""
    reader = csv.reader(io.StringIO(_text(file), newline=""), strict=True)
    header: list[str] = []
    try:
        for values in reader:
            if not header:
                header = _checked_header(file, values, columns)
            elif values:
                yield reader.line_num, _by_column(header, values)
    except csv.Error as error:
        raise ManifestError(str(file), reader.line_num, "", f"not CSV: {error}") from None
    if not header:
        raise ManifestError(str(file), 1, "", f"the header is missing: {','.join(columns)}")


def _text(file: Path) -> str:
    data = read_bytes(file)
    if len(data) > MAX_BYTES:
        raise ManifestError(str(file), 0, "", f"larger than {MAX_BYTES // 1024**2} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(str(file), data.count(b"\n", 0, error.start) + 1, "", "not UTF-8 text") from None


def _checked_header(file: Path, header: list[str], columns: tuple[str, ...]) -> list[str]:
    for column in columns:
        if header.count(column) != 1:
            problem = "stands twice in the header" if column in header else "is missing from the header"
            raise ManifestError(str(file), 1, column, f"this column {problem}")
    return header


def _by_column(header: list[str], values: list[str]) -> dict[str, str]:
    """The values by column; "" marks a row with more or fewer values than columns."""
    row = {column: value.strip() for column, value in zip(header, values, strict=False)}
    if len(values) != len(header):
        row[""] = f"{len(values)} values for {len(header)} columns"
    return row


def _check_row(row: dict[str, str], name: str, lines: dict[str, int]) -> None:
    if "" in row:
        raise _ColumnError("", row[""])
    if not row[name]:
        raise _ColumnError(name, "missing")
    if row[name] in lines:
        raise _ColumnError(name, f"`{row[name]}` stands twice: first on line {lines[row[name]]}")


def _count(row: dict[str, str], column: str) -> int:
    text = row[column]
    if not (text.isascii() and text.isdigit() and len(text) <= 13 and int(text) <= _MOST):
        raise _ColumnError(column, f"a whole number from 0 to {_MOST} is expected, not `{text[:40]}`")
    return int(text)


def _seconds(row: dict[str, str], column: str) -> float:
    try:
        seconds = float(row[column])
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _MOST:
        raise _ColumnError(column, f"seconds from 0 to {_MOST} are expected, not `{row[column][:40]}`")
    return seconds


def _node(row: dict[str, str]) -> Node:
    name, gpus, model = row["sn"], _count(row, "gpu"), row["model"]
    amounts = _amounts(row, gpus) | {"pods": MAX_PODS}
    labels = {"kubernetes.io/hostname": name} | ({GPU_MODEL: model} if model else {})
    metadata = {"name": name, "uid": name, "labels": labels}
    return convert(Node, {"metadata": metadata, "status": {"capacity": amounts, "allocatable": amounts}})


def _arrival(row: dict[str, str]) -> Arrival:
    arrives = _seconds(row, "creation_time")
    leaves = _seconds(row, "deletion_time") if row["deletion_time"] else None
    if leaves is not None and leaves < arrives:
        raise _ColumnError("deletion_time", "earlier than creation_time")
    return Arrival(_pod(row), arrives, leaves)


def _pod(row: dict[str, str]) -> Pod:
    name, qos = row["name"], row.get("qos")
    gpus = _count(row, "num_gpu")
    resources: dict[str, object] = {"requests": _amounts(row, gpus)}
    if gpus:
        resources["limits"] = {GPU: gpus}  # the API takes no extended resource without
    metadata = {"name": name, "namespace": "default", "uid": f"default/{name}", "labels": {"qos": qos} if qos else {}}
    spec = {"containers": [{"name": "main", "resources": resources}], "affinity": _gpu_affinity(row)}
    return convert(Pod, {"metadata": metadata, "spec": spec})


def _amounts(row: dict[str, str], gpus: int) -> dict[str, str | int]:
    amounts: dict[str, str | int] = {"cpu": f"{_count(row, 'cpu_milli')}m", "memory": f"{_count(row, 'memory_mib')}Mi"}
    return amounts | {GPU: gpus} if gpus else amounts


def _gpu_affinity(row: dict[str, str]) -> object:
    if not row["gpu_spec"]:
        return None
    models = [model.strip() for model in row["gpu_spec"].split("|")]
    if not all(models):
        raise _ColumnError("gpu_spec", f"models separated by `|` are expected, not `{row['gpu_spec'][:40]}`")
    terms = [{"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": models}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
