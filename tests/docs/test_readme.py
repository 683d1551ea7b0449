from __future__ import annotations

import re
from pathlib import Path

import pytest

from ksp.cli.main import COMMANDS
from ksp.cli.main import main as ksp

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
POLICIES = re.findall(r"^```ksp\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("policy", POLICIES, ids=range(len(POLICIES)))
def test_a_policy_of_the_readme_has_no_mistakes(policy: str, tmp_path: Path) -> None:
    (tmp_path / "policy.ksp").write_text(policy, encoding="utf-8")
    assert ksp(["check", str(tmp_path / "policy.ksp")]) == 0


def test_the_tests_in_the_readme_pass(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (policy,) = [policy for policy in POLICIES if "\ntest " in policy]
    (tmp_path / "policy.ksp").write_text(policy, encoding="utf-8")
    assert ksp(["test", str(tmp_path)]) == 0
    assert "1 passed, 0 failed" in "".join(capfd.readouterr())


def test_the_policy_of_the_readme_decides_for_the_default_scheduler(tmp_path: Path) -> None:
    (policy,) = [policy for policy in POLICIES if "profile" in policy]
    (tmp_path / "policy.ksp").write_text(policy, encoding="utf-8")
    answer = tmp_path / "answer.json"
    examples = str(README.parent / "examples" / "cluster")
    arguments = ["simulate", examples, "--policy", str(tmp_path / "policy.ksp"), "--output-format", "json"]
    assert ksp([*arguments, "--output", str(answer)]) == 0


def test_the_commands_that_the_readme_names_exist() -> None:
    shell = "".join(re.findall(r"^```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))
    named = [*re.findall(r"^(ksp) ([a-z]+)", shell, re.MULTILINE), *re.findall(r"`(ksp) ([a-z]+)", TEXT)]
    assert {command for _, command in named} <= {*COMMANDS}


def test_the_files_that_the_readme_links_to_exist() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (README.parent / target).exists(), target
