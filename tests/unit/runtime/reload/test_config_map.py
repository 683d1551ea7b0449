from __future__ import annotations

from pathlib import Path

import pytest

from ksp.model.config_map import ConfigMap
from ksp.model.decode import decode
from ksp.runtime.reload.config_map import ConfigMapSource, own_namespace
from ksp.runtime.reload.source import SourceError

SOURCE = ConfigMapSource("policy", "kube-system")
A = "// a\n"


def config_map(data: dict[str, str], **binary: str) -> ConfigMap:
    return ConfigMap(data=data, binary_data={key.replace("_", "."): value for key, value in binary.items()})


def test_keys_that_end_in_ksp_are_policies_and_others_count_where_a_test_names_them() -> None:
    test = 'import "a.ksp"\ntest "t" {\n  node n from "nodes.yaml"\n}\n'
    texts = SOURCE.texts_of(config_map({"b.ksp": A, "a.ksp": A, "a.test.ksp": test, "nodes.yaml": "x", "README": ""}))
    assert texts.roots == ("a.ksp", "b.ksp")
    assert sorted(texts.files) == ["a.ksp", "a.test.ksp", "b.ksp", "nodes.yaml"]
    assert (texts.name, texts.shown) == ("kube-system/policy", "kube-system/policy")


def test_a_legacy_policy_has_a_key_of_its_own() -> None:
    texts = SOURCE.texts_of(config_map({"policy.cfg": "{}", "README": ""}))
    assert (dict(texts.files), texts.roots, texts.legacy) == ({"policy.cfg": "{}"}, (), "policy.cfg")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (config_map({"a.ksp": A, "policy.cfg": "{}"}), "it has both a.ksp and policy.cfg: keep one kind"),
        (config_map({"b": "", "a": ""}), "no key that ends in .ksp, and no policy.cfg: its keys are a, b"),
        (config_map({}), "no key that ends in .ksp, and no policy.cfg: it has no keys"),
        (config_map({"a.test.ksp": A}), "no key that ends in .ksp, and no policy.cfg: its keys are a.test.ksp"),
        (config_map({"a.ksp": A}, b_ksp="AAAA"), "the keys b.ksp are binary data"),
    ],
)
def test_a_config_map_without_one_policy_says_what_is_there(found: ConfigMap, said: str) -> None:
    with pytest.raises(SourceError) as error:
        SOURCE.texts_of(found)
    assert str(error.value).startswith("the ConfigMap kube-system/policy: ")
    assert said in str(error.value)


def test_nulls_mean_nothing() -> None:
    assert decode(ConfigMap, b'{"metadata":{"name":"x"},"data":null,"binaryData":null}').data == {}


# ---- whose ConfigMap it may be


def in_cluster(folder: Path, namespace: str) -> Path:
    (folder / "namespace").write_text(namespace)
    return folder


def test_it_is_looked_for_in_the_schedulers_own_namespace(tmp_path: Path) -> None:
    assert ConfigMapSource.of("policy", None, tmp_path).namespace == "kube-system"
    own = in_cluster(tmp_path, "scheduling\n")
    assert own_namespace(own) == "scheduling"
    assert ConfigMapSource.of("policy", None, own).name == "scheduling/policy"
    assert ConfigMapSource.of("scheduling/policy", None, own).name == "scheduling/policy"


def test_another_namespace_has_to_be_named_by_its_flag(tmp_path: Path) -> None:
    own = in_cluster(tmp_path, "scheduling")
    with pytest.raises(SourceError, match="--policy-configmap-namespace=team-a"):
        ConfigMapSource.of("team-a/policy", None, own)
    assert ConfigMapSource.of("policy", "team-a", own).name == "team-a/policy"
    assert ConfigMapSource.of("team-a/policy", "team-a", own).name == "team-a/policy"


@pytest.mark.parametrize("name", ["", "/policy", "a/b/c", "a/"])
def test_what_is_no_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not the name of a ConfigMap"):
        ConfigMapSource.of(name, None, tmp_path)
