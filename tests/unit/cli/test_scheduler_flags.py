"""The command line of `ksp run`, read as kube-scheduler reads its own."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.cli.commands import ksp
from tests.unit.cli.flags import parsed

from ksp.cli.run import run
from ksp.cli.scheduler_flags.flag import Section
from ksp.cli.scheduler_flags.table import FLAGS


@pytest.mark.parametrize(
    ("arguments", "flag", "value"),
    [
        (["--leader-elect"], "leader-elect", True),
        (["--leader-elect=false"], "leader-elect", False),
        (["--leader-elect=F"], "leader-elect", False),
        (["--leader-elect=1"], "leader-elect", True),
        (["--leader_elect=false"], "leader-elect", False),
        (["--kube_api-qps", "3"], "kube-api-qps", 3.0),
        (["--kube-api-qps=3", "--kube-api-qps=4"], "kube-api-qps", 4.0),
        (["-v=2"], "v", 2),
        (["-v", "2"], "v", 2),
        (["-v2"], "v", 2),
        (["--v=99"], "v", 10),
        (["--leader-elect-retry-period=1m30s"], "leader-elect-retry-period", 90.0),
        (["--leader-elect-retry-period", "500ms"], "leader-elect-retry-period", 0.5),
        (["--leader-elect-retry-period=0"], "leader-elect-retry-period", 0.0),
        (["--assumed-pod-ttl=30"], "assumed-pod-ttl", 30.0),
        (["--assumed-pod-ttl=30s"], "assumed-pod-ttl", 30.0),
        (["--requestheader-allowed-names=a, b", "--requestheader-allowed-names", "c"], "requestheader-allowed-names",
         ("a", "b", "c")),
        (["--requestheader-group-headers=g"], "requestheader-group-headers", ("g",)),
        (["--feature-gates=A=true,B=false", "--feature-gates=C=true"], "feature-gates", ("A=true,B=false", "C=true")),
        (["--config", "a=b"], "config", "a=b"),
        (["--bind-address=::1"], "bind-address", "::1"),
    ],
)  # fmt: skip
def test_values_are_written_as_for_kube_scheduler(arguments: list[str], flag: str, value: Any) -> None:
    given = parsed(*arguments)
    assert given[flag] == value
    assert given.said == {flag}


@pytest.mark.parametrize("name", [flag.name for flag in FLAGS if flag.default is None])
def test_an_empty_text_is_as_if_a_flag_without_default_was_not_there(name: str) -> None:
    assert parsed(f"--{name}=") == parsed()


def test_what_nobody_says_has_its_default() -> None:
    given = parsed()
    assert given.said == frozenset()
    assert given.values == {flag.name: flag.default for flag in FLAGS}


def test_a_flag_that_is_true_or_false_takes_no_word_that_follows_another_flag() -> None:
    given = parsed("--leader-elect", "--port=0")
    assert (given["leader-elect"], given["port"]) == (True, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--prt=1"], "No such option '--prt'"),
        (["--prt=1"], "'--port'"),
        (["--leader-elect=no"], "`no` is neither true nor false"),
        (["--leader-elect-retry-period=15"], 'missing unit in duration "15": write 15s, 1m30s or 500ms'),
        (["--leader-elect-retry-period=-1s"], "-1s is less than 0s"),
        (["--scheduler-name= "], "the name is empty"),
        (["--leader-elect-resource-name="], "the name is empty"),
        (["--bind-address=localhost"], 'failed to parse IP: "localhost"'),
        (["--address=10.0.0.256"], 'failed to parse IP: "10.0.0.256"'),
        (["--kube-api-qps=nan"], "nan is not a number that can be used"),
        (["--hard-pod-affinity-symmetric-weight=101"], "101 is not in the range 0<=x<=100"),
        (["--leader-elect-resource-lock=etcd"], "'etcd' is not one of"),
        (["--port=65536"], "65536 is not in the range"),
        (["something"], "unexpected extra argument (something)"),
    ],
)
def test_what_cannot_be_read_is_a_mistake_on_the_command_line(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(run, arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_the_help_has_every_flag_in_its_section_and_what_is_its_default() -> None:
    told = ksp("run", "--help").output
    places = [told.index(f"{section.value}:\n") for section in Section]
    assert places == sorted(places)
    for flag, following in zip(FLAGS, [*FLAGS[1:], None], strict=True):
        assert f"--{flag.name}" in told
        if following is not None and following.section is flag.section:
            assert told.index(f"  --{flag.name}") < told.index(f"  --{following.name}") or flag.short
    text = " ".join(told.split())
    assert "How long between two tries. [2s]" in text
    assert "where the policy does not say. (deprecated) [1]" in text
    assert "--vmodule PATTERN=N,... The level is the same everywhere: use -v." in text
    assert "Show this message and exit." in text
