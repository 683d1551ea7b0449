from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.commands import TAINTS, ksp, written

from ksp import __version__
from ksp.cli.group import Entry
from ksp.cli.main import COMMANDS, cli, main

ENGINE = Path(__file__).resolve().parents[3] / "engine"
HEAVY = ("rich", "re2", "yaml", "ksp.sim", "ksp.core", "ksp.compile", "ksp.policy", "asyncio")


@pytest.fixture
def broken_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("fault", "missing", "interrupted")
    monkeypatch.setattr(cli, "table", {name: Entry(f"tests.unit.cli.commands:{name}", "") for name in names})


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ENGINE)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, text=True, capture_output=True, check=False)


def test_the_help_names_every_command_and_where_to_start() -> None:
    result = ksp("--help")
    assert result.exit_code == 0
    for name, entry in COMMANDS.items():
        assert (f"  {name} " in result.output) is bool(entry.help)  # one without a line is not for people
        assert entry.help in result.output
    assert "ksp demo" in result.output.partition("Start with:")[2]


def test_the_version() -> None:
    assert ksp("--version").output == f"ksp {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_there_and_says_what_it_does(name: str) -> None:
    result = ksp(name, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: ksp {name}")


def test_a_command_that_is_not_there_suggests_the_nearest() -> None:
    result = ksp("chek")
    assert result.exit_code == 2
    assert "There is no command `chek`. Did you mean `check`?" in result.output


@pytest.mark.usefixtures("broken_commands")
def test_a_fault_of_ksp_is_two_lines_and_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KSP_DEBUG", raising=False)
    assert main(["fault"]) == 70
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "ksp: internal error: ZeroDivisionError: first line"
    assert "KSP_DEBUG=1" in said[1]
    assert len(said) == 2


@pytest.mark.usefixtures("broken_commands")
def test_who_looks_for_a_fault_sees_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSP_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["fault"])


@pytest.mark.usefixtures("broken_commands")
def test_what_the_system_refuses_is_a_line_with_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["missing"]) == 1
    assert capsys.readouterr().err == "ksp: /nowhere/at/all: No such file or directory\n"


@pytest.mark.usefixtures("broken_commands")
def test_an_interruption_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["interrupted"]) == 130
    assert capsys.readouterr().err == "ksp: interrupted\n"


def test_mistakes_on_the_command_line_end_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2
    assert main(["check", "--output-format", "xml", "x"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "ksp", "rule"]
    with os.fdopen(writing, "wb") as closed:
        result = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": str(ENGINE)}, stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert result.returncode == 141
    assert result.stderr == b""


def test_help_and_check_start_without_what_they_do_not_need(tmp_path: Path) -> None:
    written(tmp_path, {"taints.ksp": TAINTS})
    code = f"""
import sys
from ksp.cli.main import main
code = main(sys.argv[1:])
print(code, *[name for name in {HEAVY} if name in sys.modules])
"""
    checked = python(code, "check", str(tmp_path / "taints.ksp"))
    assert checked.stdout.splitlines()[-1] == "0"
    helped = python(code.replace("('rich'", "('ksp.check', 'lark', 'msgspec', 'rich'"), "--help")
    assert helped.stdout.splitlines()[-1] == "0"


def test_names_that_are_no_text_can_be_printed(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.ksp")
    result = python("import sys; from ksp.cli.main import main; sys.exit(main(sys.argv[1:]))", "check", name)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "cannot read the file" in result.stdout


@pytest.mark.parametrize(("arguments", "code"), [("--help", 0), ("rule", 0), ("simulate -", 1)])
def test_closed_streams_are_no_fault(arguments: str, code: int) -> None:
    """As after `>&- <&-` in a shell. A fault would end with another code, or say so."""
    command = f"{sys.executable} -m ksp {arguments} >&- <&-"
    done = subprocess.run(command, shell=True, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
