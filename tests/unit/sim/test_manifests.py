"""Objects are read from files with their places; what is not valid names file, line and field."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.sim.manifests import ManifestError, Manifests, load

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

TWO_PODS = """
apiVersion: v1
kind: Pod
metadata:
  name: one
spec:
  containers:
    - name: main
      image: nginx
---
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: shop, uid: abc}
"""


def read(tmp_path: Path, text: str, *, name: str = "pods.yaml", skip_invalid: bool = False) -> Manifests:
    file = tmp_path / name
    file.write_text(text)
    return load([str(file)], skip_invalid=skip_invalid)


def refused(tmp_path: Path, text: str, name: str = "pods.yaml") -> tuple[int, str, str]:
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, text, name=name)
    assert caught.value.file == str(tmp_path / name)
    return caught.value.line, caught.value.field, caught.value.message


def pod(name: str, more: str = "") -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n{more}---\n"


def test_objects_have_places_namespaces_and_uids(tmp_path: Path) -> None:
    one, two = read(tmp_path, TWO_PODS).objects
    assert (one.kind, one.namespace, one.name, one.line) == ("Pod", "default", "one", 2)
    assert (two.namespace, two.name, two.line) == ("shop", "two", 11)
    assert isinstance(one.value, Pod)
    assert isinstance(two.value, Pod)
    assert (one.value.metadata.namespace, one.value.metadata.uid) == ("default", "default/one")
    assert (two.value.metadata.namespace, two.value.metadata.uid) == ("shop", "abc")
    assert one.value.spec.containers[0].image == "nginx"


def test_nodes_are_in_no_namespace(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Node\nmetadata: {name: n, namespace: odd}\n"
    (node,) = read(tmp_path, text).objects
    assert isinstance(node.value, Node)
    assert (node.namespace, node.value.metadata.namespace, node.value.metadata.uid) == ("", "", "n")


LISTED = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": None},
        {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "b"}}]},
        {"apiVersion": "v1", "kind": "PodList", "items": None},
    ],
}


@pytest.mark.parametrize("name", ["list.json", "list.yaml"])
def test_lists_are_flattened_and_name_the_kind_of_their_items(tmp_path: Path, name: str) -> None:
    text = json.dumps(LISTED, indent=1)
    loaded = read(tmp_path, text, name=name).objects
    assert [(item.kind, item.name, item.line) for item in loaded] == [("Pod", "a", 5), ("Node", "b", 13)]


def test_folders_are_read_whole_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    for path, name in (("b/x.yml", "second"), ("a.yaml", "first"), ("c.json", "third"), (".hidden/d.yaml", "none")):
        (tmp_path / path).write_text(f'{{"kind": "Pod", "metadata": {{"name": "{name}"}}}}')
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert [item.name for item in load([str(tmp_path)]).objects] == ["first", "second", "third"]


def test_standard_input() -> None:
    loaded = load(["-"], stdin=io.BytesIO(pod("a").encode()))
    assert [(item.name, item.file) for item in loaded.objects] == [("a", "<stdin>")]


def test_templates_and_unknown_kinds_are_counted(tmp_path: Path) -> None:
    kinds = [("apps/v1", "Deployment"), ("batch/v1", "Job"), ("apps/v1", "ReplicaSet"), ("v1", "ConfigMap")]
    kinds += [("serving.knative.dev/v1", "Service"), ("v1", "ConfigMap"), ("v1", "Service")]
    texts = [
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x{i}}}" for i, (version, kind) in enumerate(kinds)
    ]
    read_all = read(tmp_path, "\n---\n".join(texts))
    assert [item.kind for item in read_all.objects] == ["ReplicaSet", "Service"]
    assert read_all.templates == {"Deployment": 1, "Job": 1, "ReplicaSet": 1}
    assert read_all.unknown == {"ConfigMap": 2, "Service.serving.knative.dev": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- 1", (1, "", "not a Kubernetes object: a map with `kind` and `metadata` is expected")),
        ("\nmetadata: {name: a}", (2, "kind", "missing")),
        ("kind: 5", (1, "kind", "text is expected")),
        ("apiVersion: 1\nkind: Pod", (1, "apiVersion", "text is expected")),
        ("kind: Pod", (1, "metadata.name", "missing")),
        ("kind: Pod\nmetadata: x", (2, "metadata", "a map is expected")),
        ("kind: Pod\nmetadata:\n  name: 7", (3, "metadata.name", "text is expected; put it in quotes")),
        (
            "kind: Pod\nmetadata: {name: a,\n namespace: 7}",
            (3, "metadata.namespace", "text is expected; put it in quotes"),
        ),
        (
            "kind: Pod\nmetadata:\n  generateName: a-",
            (2, "metadata.name", "missing (`generateName` needs an API server)"),
        ),
        ("kind: List\nitems: {}", (2, "items", "a list is expected")),
        (
            pod("a", "spec:\n  containers:\n  - image: 5\n"),
            (7, "spec.containers[0].image", "expected a string, got the number 5"),
        ),
        (pod("a", "  labels:\n    a/b: yes\n"), (6, 'metadata.labels["a/b"]', "expected a string, got true")),
        ("kind: Pod\nmetadata: [", (2, "", "not YAML: did not find expected node content")),
    ],
)
def test_mistakes_have_a_line_and_a_field(tmp_path: Path, text: str, expected: tuple[int, str, str]) -> None:
    assert refused(tmp_path, text) == expected


@pytest.mark.parametrize("name", ["list.json", "list.yaml"])
def test_mistakes_in_lists(tmp_path: Path, name: str) -> None:
    text = '{"kind": "List", "items": [\n {"kind": "Pod",\n\t"metadata": {"name": "a"},\n "spec":\n {"nodeName": 3}}]}'
    assert refused(tmp_path, text, name) == (5, "spec.nodeName", "expected a string, got the number 3")


def test_the_text_of_an_error_is_where_what(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, "\n\nkind: Pod")
    assert str(caught.value) == f"{tmp_path / 'pods.yaml'}:3: metadata.name: missing"


def test_the_same_object_twice_names_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(pod("x") + pod("y"))
    (tmp_path / "b.yaml").write_text(pod("z") + pod("y"))
    with pytest.raises(ManifestError) as caught:
        load([str(tmp_path)])
    error = caught.value
    assert (error.file, error.line, error.field) == (str(tmp_path / "b.yaml"), 9, "metadata.name")
    assert error.message == f"Pod default/y stands twice: first at {tmp_path / 'a.yaml'}:6"


def test_skipping_collects_every_mistake_and_keeps_the_rest(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        pod("x") + pod("y", "spec: {nodeName: 1}\n") + pod("x") + "kind: 1\n---\n" + pod("z")
    )
    (tmp_path / "b.yaml").write_text("a: [")
    (tmp_path / "c.json").write_text('{"kind": "Pod", "metadata": {"name": "w"}}')
    loaded = load([str(tmp_path)], skip_invalid=True)
    assert [item.name for item in loaded.objects] == ["x", "z", "w"]
    assert [(Path(error.file).name, error.line, error.field) for error in loaded.invalid] == [
        ("a.yaml", 10, "spec.nodeName"),
        ("a.yaml", 15, "metadata.name"),
        ("a.yaml", 17, "kind"),
        ("b.yaml", 1, ""),
    ]


@pytest.mark.parametrize("skip_invalid", [False, True])
def test_paths_that_cannot_be_read(tmp_path: Path, skip_invalid: bool) -> None:
    (tmp_path / "empty").mkdir()
    expected = {
        "missing": "there is no such file or folder",
        "empty": "no *.yaml, *.yml or *.json in this folder",
        "x" * 300: "cannot be read: File name too long",
    }
    for name, message in expected.items():
        with pytest.raises(ManifestError) as caught:
            load([str(tmp_path / name)], skip_invalid=skip_invalid)
        assert caught.value.message == message


def test_the_examples_are_a_cluster_and_a_workload() -> None:
    loaded = load([str(EXAMPLES)])
    nodes = [item.value for item in loaded.objects if isinstance(item.value, Node)]
    pods = [item.value for item in loaded.objects if isinstance(item.value, Pod)]
    assert len(nodes) >= 12
    assert len({node.metadata.labels["topology.kubernetes.io/zone"] for node in nodes}) == 3
    assert any(node.spec.taints for node in nodes)
    assert sum(not pod.spec.node_name for pod in pods) >= 60
    not_objects = {"KubeSchedulerConfiguration.kubescheduler.config.k8s.io", "Policy"}
    assert loaded.unknown.keys() == not_objects
