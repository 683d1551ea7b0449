"""`ksp bundle`: what is written, what keeps it from being written, and that it loads."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.unit.cli.commands import ROOM, ksp, room, written

from ksp.apiserver.server import ApiServer
from ksp.model.config_map import ConfigMap
from ksp.model.decode import convert
from ksp.policy.assemble import Policy, Settings, assemble
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.sources import FolderSource

PROFILE = 'import "room.ksp"\n\nprofile "default-scheduler" uses Both { Both_is = 1 }\n'.replace("Both_is = 1 ", "")
TESTS = """
test "the pod of a file fits" {
  node small { allocatable: {cpu: 1, memory: 1Gi, pods: 110} }
  pod web from 'fixtures/web.yaml'
  expect Room admits web on small
}
"""
UNMET = TESTS.replace("admits", "denies").replace("on small\n", 'on small with "full"\n')
POD = "kind: Pod\napiVersion: v1\nmetadata: {name: web}\nspec: {containers: [{name: a, image: x}]}\n"


def house(folder: Path, tests: str = TESTS) -> Path:
    """A policy with imports, tests and a file of theirs, in folders."""
    room(folder, tests)
    return written(folder, {"main.ksp": PROFILE, "fixtures/web.yaml": POD})


def manifest(result_text: str) -> dict[str, str]:
    document = yaml.safe_load(result_text)
    assert (document["apiVersion"], document["kind"]) == ("v1", "ConfigMap")
    data: dict[str, str] = document["data"]
    return data


def decides(policy: Policy) -> list[object]:
    """What tells profiles apart."""
    return [
        (each.scheduler_name, each.percentage, [(p.name, p.plugin, p.arguments) for p in each.predicates],
         [(p.name, p.plugin, p.weight) for p in each.priorities])
        for each in policy.profiles
    ]  # fmt: skip


def test_a_folder_becomes_the_keys_of_a_config_map(tmp_path: Path) -> None:
    result = ksp("bundle", house(tmp_path))
    assert result.exit_code == 0, result.stderr
    data = manifest(result.stdout)
    assert list(data) == ["fixtures-web.yaml", "lib-room.ksp", "main.ksp", "room.ksp", "room.test.ksp"]
    assert data["room.ksp"] == ROOM.replace("lib/room.ksp", "lib-room.ksp")
    assert 'from "fixtures-web.yaml"' in data["room.test.ksp"]
    size = sum(map(len, data.values()))
    assert result.stderr == (
        f"ConfigMap kube-system/ksp-policy: 5 keys, {size} of 1,048,576 bytes (0.1 %), 1 expectation met\n"
    )


def test_it_decides_the_same_wherever_it_is_read_from(tmp_path: Path) -> None:
    """The folder, the ConfigMap mounted as files, and the ConfigMap read through the API."""
    folder = house(tmp_path / "policies")
    data = manifest(ksp("bundle", folder).stdout)
    mounted = written(tmp_path / "mounted", {f"..2026/{key}": text for key, text in data.items()})
    (mounted / "..data").symlink_to("..2026")
    for key in data:
        (mounted / key).symlink_to(f"..data/{key}")
    found = convert(ConfigMap, {"metadata": {"name": "ksp-policy", "namespace": "kube-system"}, "data": data})
    texts = [
        FolderSource(str(folder)).read(), FolderSource(str(mounted)).read(),
        ConfigMapSource("ksp-policy", "kube-system").texts_of(found),
    ]  # fmt: skip
    wanted, *others = [decides(assemble(each, Settings())) for each in texts]
    assert others == [wanted, wanted]
    assert ksp("check", mounted).exit_code == 0
    assert ksp("test", mounted).stdout == "1 passed, 0 failed\n"


def test_a_file_brings_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    house(tmp_path)
    written(tmp_path, {"other.ksp": "predicate {"})
    result = ksp("bundle", tmp_path / "room.ksp", "--name", "mine", "--namespace", "rules", "-o", tmp_path / "out.yaml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"ConfigMap rules/mine in {tmp_path / 'out.yaml'}: 4 keys" in result.stderr
    document = yaml.safe_load((tmp_path / "out.yaml").read_text())
    assert document["metadata"] == {"name": "mine", "namespace": "rules"}
    assert list(document["data"]) == ["fixtures-web.yaml", "lib-room.ksp", "room.ksp", "room.test.ksp"]


def test_the_same_policy_gives_the_same_text(tmp_path: Path) -> None:
    one, other = house(tmp_path / "one"), house(tmp_path / "other")
    assert ksp("bundle", one).stdout == ksp("bundle", other).stdout


WRONG = {
    "a mistake": ({"room.ksp": ROOM.replace("left(node) / 1m", "lefd(node) / 1m")}, "error[KSP0203]", "room.ksp:8:9"),
    "an import that is not there": ({"lib/room.ksp": 'import "gone.ksp"\n'}, "error[KSP0501]", "lib/room.ksp:1:8"),
    "a mistake in a test": ({"room.test.ksp": 'import "room.ksp"\ntest "a" { node n {} }'}, "error", "room.test.ksp"),
    "a test that is not met": (
        {"room.test.ksp": 'import "room.ksp"\n' + UNMET},
        "expected Room denies web on small", "room.test.ksp:6",
    ),
    "a file of tests that is gone": ({"room.test.ksp": f'import "room.ksp"\n{TESTS.replace("web.yaml", "gone.yaml")}'},
        "there is no such file", "room.test.ksp:5"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "said", "where"), WRONG.values(), ids=WRONG)
def test_with_mistakes_nothing_is_written(tmp_path: Path, files: dict[str, str], said: str, where: str) -> None:
    written(house(tmp_path / "policies"), files)
    result = ksp("bundle", tmp_path / "policies", "-o", tmp_path / "out.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr
    assert where in result.stderr
    assert not (tmp_path / "out.yaml").exists()


def test_what_a_config_map_cannot_hold_is_refused(tmp_path: Path) -> None:
    house(tmp_path)
    padding = "// " + "x" * 100 + "\n"
    written(tmp_path, {f"p{number}.ksp": padding * 2_300 for number in range(5)})
    result = ksp("bundle", tmp_path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "of 1,048,576 bytes (114.1 %): leave tests out" in result.stderr
    for number in range(2, 5):
        (tmp_path / f"p{number}.ksp").unlink()
    result = ksp("bundle", tmp_path)
    assert result.exit_code == 0
    assert "note: it is too large for `kubectl apply`; `kubectl apply --server-side` takes it" in result.stderr


def test_rules_without_a_profile_are_for_those_who_have_a_configuration(tmp_path: Path) -> None:
    written(tmp_path, {"a.ksp": 'import "ksp:resources.ksp"\n'})
    result = ksp("bundle", tmp_path)
    assert result.exit_code == 0
    assert result.stderr.startswith("note: it schedules only beside a KubeSchedulerConfiguration: ")


def test_what_the_scheduler_would_refuse_is_not_written(tmp_path: Path) -> None:
    twice = 'import "room.ksp"\nprofile "default-scheduler" uses Both {}\n'
    room(tmp_path, "")
    written(tmp_path, {"a.ksp": twice, "b.ksp": twice})
    result = ksp("bundle", tmp_path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'the profile "default-scheduler" is declared twice' in result.stderr


def test_a_file_is_judged_by_what_its_config_map_will_load(tmp_path: Path) -> None:
    """Of a file without profiles its only provider counts; of a ConfigMap those of all files."""
    written(tmp_path, {"lib.ksp": "provider Lib {}\n", "main.ksp": 'import "lib.ksp"\nprovider Main extends Lib {}\n'})
    result = ksp("bundle", tmp_path / "main.ksp")
    assert "has the providers Lib, Main" in result.stderr


def test_a_legacy_policy_is_bundled_as_it_is(tmp_path: Path) -> None:
    text = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsResources"}], "priorities": []}\n'
    written(tmp_path, {"policy.json": text, "bad.json": text.replace("PodFits", "PodFitz")})
    result = ksp("bundle", tmp_path / "policy.json")
    assert (result.exit_code, manifest(result.stdout)) == (0, {"policy.cfg": text})
    result = ksp("bundle", tmp_path / "bad.json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "PodFitzResources" in result.stderr


@pytest.mark.parametrize("option", [("--name", "No"), ("--name", ""), ("--namespace", "a.b"), ("--namespace", "-a")])
def test_names_are_those_that_kubernetes_takes(tmp_path: Path, option: tuple[str, str]) -> None:
    result = ksp("bundle", house(tmp_path), *option)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"`{option[1]}` is no name that Kubernetes takes" in result.stderr


@pytest.mark.parametrize("path", ["gone", "gone.ksp", "gone.json", "empty"])
def test_what_is_not_there_is_said(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    result = ksp("bundle", tmp_path / path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert path in result.stderr


def test_an_api_server_takes_it(tmp_path: Path) -> None:
    server = ApiServer()
    before = server.state.store.counts().get("configmaps", 0)
    server.load([yaml.safe_load(ksp("bundle", house(tmp_path)).stdout)])
    assert server.state.store.counts()["configmaps"] == before + 1
