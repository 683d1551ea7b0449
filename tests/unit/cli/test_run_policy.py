"""Flags to where the rules come from."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import click
import pytest
from tests.unit.cli.commands import written
from tests.unit.cli.flags import SMALL, Started, parsed

from ksp.cli.run_policy import NEEDS_FILE, Chosen, chosen, shipped_policy
from ksp.policy.errors import PolicyError
from ksp.policy.load import DEFAULT
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.sources import FileSource, FolderSource, LegacyFileSource

LEGACY = {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "HostName"}], "priorities": []}


def of(*arguments: str) -> Chosen:
    return chosen(parsed(*arguments))


def test_without_flags_it_is_what_is_shipped() -> None:
    choice = of()
    assert (choice.source, choice.provider, choice.notes) == (None, "", ())
    texts = choice.texts(DEFAULT)
    assert texts is not None
    assert (texts.roots, texts.files) == ((DEFAULT,), {})
    assert shipped_policy().name == DEFAULT


def test_a_file_a_folder_and_a_policy_of_kube_scheduler_are_read(tmp_path: Path) -> None:
    written(tmp_path, {"a.ksp": SMALL, "policy.json": json.dumps(LEGACY)})
    for flag, name, kind, roots in (
        ("--policy-file", str(tmp_path / "a.ksp"), FileSource, ("a.ksp",)),
        ("--policy-dir", str(tmp_path), FolderSource, ("a.ksp",)),
        ("--policy-config-file", str(tmp_path / "policy.json"), LegacyFileSource, ()),
    ):
        choice = of(f"{flag}={name}")
        assert isinstance(choice.source, kind)
        texts = choice.texts(DEFAULT)
        assert texts is not None
        assert (texts.name, texts.roots, bool(texts.legacy)) == (name, roots, not roots)


def test_a_shipped_file_may_be_named_and_never_changes() -> None:
    choice = of("--policy-file=ksp:cluster-autoscaler.ksp")
    assert choice.source is None
    texts = choice.texts(DEFAULT)
    assert texts is not None
    assert texts.roots == ("ksp:cluster-autoscaler.ksp",)


def test_a_config_map_is_known_only_by_the_cluster() -> None:
    choice = of("--policy-configmap=rules")
    assert isinstance(choice.source, ConfigMapSource)
    assert (choice.source.name, choice.texts(DEFAULT)) == ("kube-system/rules", None)


def test_a_config_map_of_another_namespace_has_to_be_meant() -> None:
    choice = of("--policy-configmap=rules", "--policy-configmap-namespace=other")
    assert choice.source is not None
    assert choice.source.name == "other/rules"
    with pytest.raises(PolicyError, match="--policy-configmap-namespace=other"):
        of("--policy-configmap=other/rules")


# ---- the order of kube-scheduler 1.19


def test_the_config_map_comes_before_the_file_unless_the_legacy_file_is_wanted(tmp_path: Path) -> None:
    file = str(written(tmp_path, {"policy.json": json.dumps(LEGACY)}) / "policy.json")
    both = ("--policy-configmap=rules", f"--policy-config-file={file}")
    choice = of(*both)
    assert isinstance(choice.source, ConfigMapSource)
    assert choice.notes == (
        "--policy-config-file has no effect beside --policy-configmap, but with --use-legacy-policy-config",
    )
    legacy = of(*both, "--use-legacy-policy-config")
    assert isinstance(legacy.source, LegacyFileSource)
    assert legacy.notes == ("--policy-configmap has no effect beside --use-legacy-policy-config",)


@pytest.mark.parametrize("flag", ["--policy-config-file=p.json", "--policy-configmap=rules"])
def test_a_provider_comes_last(flag: str) -> None:
    choice = of(flag, "--algorithm-provider=DefaultProvider")
    assert choice.provider == ""
    assert choice.notes[0].startswith("--algorithm-provider has no effect beside a policy from ")
    assert of("--algorithm-provider=ClusterAutoscalerProvider").shipped == "ksp:cluster-autoscaler.ksp"


def test_the_legacy_file_has_to_be_named_in_kube_schedulers_words() -> None:
    with pytest.raises(PolicyError) as error:
        of("--use-legacy-policy-config=true", "--policy-configmap=rules")
    assert error.value.messages == (NEEDS_FILE,)


@pytest.mark.parametrize(
    "other",
    [
        "--policy-dir=d", "--policy-configmap=c", "--policy-config-file=p", "--algorithm-provider=DefaultProvider",
        "--use-legacy-policy-config",
    ],
)  # fmt: skip
def test_ksps_own_flags_exclude_all_others(other: str) -> None:
    with pytest.raises(click.UsageError, match="exclude each other: the rules come from one place"):
        of("--policy-file=f", other)


def test_a_namespace_without_a_config_map_is_told() -> None:
    assert of("--policy-configmap-namespace=x").notes == (
        "--policy-configmap-namespace has no effect without --policy-configmap",
    )


# ---- wrong configurations, wrong policies, and both

WRONG = 'predicate P { deny "x" when nod.name == "" }\n'
TWO = SMALL + 'profile "other" uses Small { }\n'
WRONG_CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 101
podInitialBackoffSeconds: 20
leaderElection: {leaseDuration: 1s}
profile: []
"""


def test_all_that_is_wrong_with_both_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, {"wrong.ksp": WRONG, "wrong.yaml": WRONG_CONFIGURATION})
    start = Started([f"--config={folder}/wrong.yaml", f"--policy-file={folder}/wrong.ksp"], monkeypatch)
    told = start.result.stderr
    assert (start.result.exit_code, start.all_options) == (1, [])
    assert f"error[KSP0202]: nothing here is called `nod`\n --> {folder}/wrong.ksp:1:29" in told
    assert f"Error: {folder}/wrong.yaml:3: percentageOfNodesToScore: Invalid value: 101: " in told
    assert f'Error: {folder}/wrong.yaml:6: profile: strict decoding error: unknown field "profile"' in told
    assert f"Error: {folder}/wrong.yaml:5: leaderElection.leaseDuration: " in told
    assert f"Error: {folder}/wrong.yaml:1: podMaxBackoffSeconds: " in told


def test_a_wrong_configuration_alone_does_not_blame_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = SMALL.splitlines()[0]  # without a profile: the configuration has them
    folder = written(tmp_path, {"library.ksp": library, "wrong.yaml": WRONG_CONFIGURATION})
    start = Started([f"--config={folder}/wrong.yaml", f"--policy-file={folder}/library.ksp"], monkeypatch)
    assert start.result.exit_code == 1
    assert all(line.startswith(f"Error: {folder}/wrong.yaml:") for line in start.result.stderr.splitlines())


def test_a_policy_and_plugins_are_refused_in_kube_schedulers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """\
apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}]}]
"""
    wrong = {**LEGACY, "predicates": [{"name": "Nonsense"}]}
    folder = written(tmp_path, {"policy.json": json.dumps(wrong), "config.yaml": text})
    start = Started([f"--config={folder}/config.yaml", f"--policy-config-file={folder}/policy.json"], monkeypatch)
    assert start.result.exit_code == 1
    first, second = start.result.stderr.splitlines()
    assert first == "Error: cannot set a Plugin config and Policy config"
    assert "Nonsense" in second
    assert "/predicates/0" in second


def test_flags_a_configuration_and_a_policy_that_are_wrong_are_told_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path, {"wrong.yaml": WRONG_CONFIGURATION, "two.ksp": TWO})
    start = Started([f"--config={folder}/wrong.yaml", "--use-legacy-policy-config"], monkeypatch)
    assert f"Error: {NEEDS_FILE}\nError: {folder}/wrong.yaml:" in start.result.stderr
    flags = ["--leader-elect-lease-duration=1s", "--scheduler-name=x", f"--policy-file={folder}/two.ksp"]
    first, second = Started(flags, monkeypatch).result.stderr.splitlines()
    assert first.startswith("Error: leaderElection.leaseDuration: Invalid value: 10s")
    assert "declares several profiles (small, other)" in second


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ({"c.yaml": "\udcff"}, ["--config=c.yaml"], "Error: --config: cannot read c.yaml: it is not UTF-8 text"),
        ({}, ["--config=/nowhere.yaml"], "Error: --config: cannot read /nowhere.yaml: No such file or directory"),
        ({"c.yaml": "{"}, ["--config=c.yaml"], "Error: c.yaml:1: "),
        ({"c.yaml": "kind: Pod\napiVersion: v1\n"}, ["--config=c.yaml"], 'Error: c.yaml:2: apiVersion: no kind "Pod"'),
        ({"p.json": "[]"}, ["--policy-config-file=p.json"], "Error: p.json: "),
        ({"d/x": ""}, ["--policy-dir=d"], "error[KSP0101]: there is no policy (`*.ksp`) in this folder"),
        ({"d/x": ""}, ["--policy-file=d"], "Error: d is a folder: name it with --policy-dir"),
        ({"f.ksp": SMALL}, ["--policy-dir=f.ksp"], "Error: f.ksp is not a folder: name a file with --policy-file"),
    ],
)
def test_what_cannot_be_read_is_named(
    files: dict[str, str], arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    monkeypatch.chdir(tmp_path)
    start = Started(arguments, monkeypatch)
    assert start.result.exit_code == 1
    assert said in start.result.stderr


def test_the_same_source_is_read_and_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, {"small.ksp": SMALL}) / "small.ksp"
    options = Started([f"--policy-file={file}"], monkeypatch).options
    assert isinstance(options.source, FileSource)
    assert options.source.read_at == options.source.marks()
    assert Started(["--policy-configmap=rules"], monkeypatch).options.policy is None


def test_warnings_of_the_configuration_are_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ksp.flags")
    text = [*WRONG_CONFIGURATION.splitlines()[:2], "delayCacheUntilActive: true", ""]
    folder = written(tmp_path, {"small.ksp": SMALL, "config.yaml": "\n".join(text)})
    Started([f"--config={folder}/config.yaml", f"--policy-file={folder}/small.ksp"], monkeypatch)
    assert [text for text in caplog.messages if text.startswith(f"{folder}/config.yaml:3: delayCacheUntilActive")]
