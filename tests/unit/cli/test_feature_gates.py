from __future__ import annotations

from collections.abc import Mapping

import click
import pytest
from click.testing import CliRunner, Result

from ksp.cli.feature_gates import DEFAULTS, EQUIVALENCE_CLASSES, OTHERS, RULES, feature_gates, own_gates


@click.command
@click.option("--feature-gates", "gates", multiple=True, callback=own_gates)
def show(gates: Mapping[str, bool]) -> None:
    click.echo(" ".join(f"{name}={value}" for name, value in gates.items()))


def given(*texts: str) -> Result:
    return CliRunner().invoke(show, [part for text in texts for part in ("--feature-gates", text)])


def test_all_gates_have_a_value() -> None:
    assert given().stdout.split() == [f"{name}={value}" for name, value in DEFAULTS.items()]


@pytest.mark.parametrize("word", ["false", "False", "FALSE", "f", "F", "0"])
def test_words_for_false(word: str) -> None:
    assert f"{EQUIVALENCE_CLASSES}=False" in given(f"{EQUIVALENCE_CLASSES}={word}").stdout


@pytest.mark.parametrize("word", ["true", "True", "TRUE", "t", "T", "1"])
def test_words_for_true_and_the_last_counts(word: str) -> None:
    assert (
        f"{EQUIVALENCE_CLASSES}=True" in given(f"{EQUIVALENCE_CLASSES}=false", f"{EQUIVALENCE_CLASSES}={word}").stdout
    )
    assert f"{EQUIVALENCE_CLASSES}=True" in given(f"{EQUIVALENCE_CLASSES}=false, {EQUIVALENCE_CLASSES}={word},").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("EnableEquivalenceCache=true", "there is no feature gate `EnableEquivalenceCache`: did you mean"),
        ("Nonsense=true", f"there is no feature gate `Nonsense`: there is {EQUIVALENCE_CLASSES}"),
        ("=true", "there is no feature gate ``"),
        (EQUIVALENCE_CLASSES, "does not say true or false"),
        (f"{EQUIVALENCE_CLASSES}=yes", f"write {EQUIVALENCE_CLASSES}=true or {EQUIVALENCE_CLASSES}=false"),
        (f"{EQUIVALENCE_CLASSES}=", "does not say true or false"),
        ("VolumeScheduling=false", "VolumeScheduling is true here: what kube-scheduler's gate decides, a policy says"),
        ("AllAlpha=true", "AllAlpha is false here"),
        ("A=true,B=true", "there is no feature gate `B`"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    result = given(text)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", "").split())


def test_gates_of_kube_scheduler_may_have_the_value_that_the_rules_have_and_those_of_others_any() -> None:
    gates = feature_gates(
        ["VolumeScheduling=true,DefaultPodTopologySpread=false", "RotateKubeletServerCertificate=true"]
    )
    assert gates.own == DEFAULTS
    assert gates.meaningless == ("VolumeScheduling", "DefaultPodTopologySpread", "RotateKubeletServerCertificate")


def test_each_gate_is_of_one_kind() -> None:
    assert not OTHERS & (RULES.keys() | DEFAULTS.keys())
    assert not RULES.keys() & DEFAULTS.keys()
