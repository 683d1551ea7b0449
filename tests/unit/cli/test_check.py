from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.commands import TAINTS, ksp, room, written

WRONG = TAINTS.replace("taint.effect", "taint.efect").replace("size(bad)", "sise(bad)")
WARNED = 'predicate A {\n  let unused = 1\n  deny "no" when node.spec.unschedulable\n}\n'
OPEN = 'predicate R { deny "x" when node.spec.unschedulable }\n'
ADVISED = 'predicate A {\n  deny "no" when pod.spec.nodeName == "x"\n}\n'


def test_a_sound_policy_has_no_mistakes(tmp_path: Path) -> None:
    result = ksp("check", written(tmp_path, {"taints.ksp": TAINTS}) / "taints.ksp")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "1 file checked: no mistakes\n"


def test_all_mistakes_are_shown_with_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written(tmp_path, {"taints.ksp": WRONG}))
    result = ksp("check", "taints.ksp")
    assert result.exit_code == 1
    assert "error[KSP0201]: a Taint has no field `efect`\n --> taints.ksp:3:50" in result.stdout
    assert "error[KSP0203]: there is no function `sise`\n --> taints.ksp:5:48" in result.stdout
    assert result.stderr == "1 file checked: 2 errors\n"
    assert "\x1b" not in result.stdout


def test_a_mistake_that_several_files_import_is_shown_once(tmp_path: Path) -> None:
    files = {
        "lib/bad.ksp": "const a: int = b\n",
        "one.ksp": 'import "lib/bad.ksp"\n',
        "two.ksp": 'import "lib/bad.ksp"\n',
    }
    result = ksp("check", written(tmp_path, files), tmp_path / "one.ksp")
    assert result.stdout.count("error[") == 1
    assert "lib/bad.ksp:1:16" in result.stdout


def test_imports_are_seen_from_the_folder_that_is_checked(tmp_path: Path) -> None:
    room(tmp_path)
    assert ksp("check", tmp_path).exit_code == 0
    assert ksp("check", tmp_path / "room.ksp", tmp_path / "lib" / "room.ksp").exit_code == 0


def test_a_folder_may_hold_more_files_than_one_may_import(tmp_path: Path) -> None:
    files = {f"p{i:03}.ksp": f'import "c{i:03}.ksp"\n' for i in range(100)}
    files |= {f"c{i:03}.ksp": f"const c{i}: int = {i}\n" for i in range(100)}
    result = ksp("check", written(tmp_path, files), "--output-format", "json")
    assert [d for d in json.loads(result.stdout) if d["severity"] == "error"] == []
    assert result.stderr.startswith("200 files checked")


def test_the_limit_of_one_file_holds_wherever_it_stands(tmp_path: Path) -> None:
    files = {f"c{i:03}.ksp": f"const c{i}: int = {i}\n" for i in range(70)}
    files["z.ksp"] = "".join(f'import "c{i:03}.ksp"\n' for i in range(70))
    for path in (tmp_path, tmp_path / "z.ksp"):
        found = json.loads(ksp("check", written(tmp_path, files), path, "--output-format", "json").stdout)
        assert {d["code"] for d in found if d["severity"] == "error"} == {"KSP0404"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "KSP0103"),
        (b"secret:x:0:0", "KSP0104"),
        (b"// " + b"x" * 300_000, "KSP0102"),
        (b"\x00\x01\x02", "KSP0104"),
    ],
)
def test_files_that_are_no_policies(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.ksp").write_bytes(content)
    result = ksp("check", tmp_path / "a.ksp")
    assert result.exit_code == 1
    assert f"error[{said}]" in result.stdout
    assert "secret" not in result.stdout


def test_paths_without_a_policy(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = ksp("check", tmp_path / "nowhere.ksp", tmp_path / "empty", "ksp:nowhere.ksp")
    assert result.exit_code == 1
    assert result.stdout.count("error[KSP0101]") == 3
    assert f"cannot read the file: no such file or directory\n --> {tmp_path}/nowhere.ksp" in result.stdout
    assert "there is no policy (`*.ksp`) in this folder" in result.stdout
    assert "there is no such file in the shipped library\n --> ksp:nowhere.ksp" in result.stdout
    assert result.stderr == "0 files checked: 3 errors\n"


def test_a_link_out_of_the_folder_is_not_followed_but_a_named_one_is(tmp_path: Path) -> None:
    written(tmp_path, {"in/a.ksp": TAINTS, "out/room.ksp": "const a: int = 1\n", "out/b.ksp": 'import "room.ksp"\n'})
    (tmp_path / "in" / "b.ksp").symlink_to(tmp_path / "out" / "b.ksp")
    assert "it is a link out of the folder" in ksp("check", tmp_path / "in").stdout
    assert ksp("check", tmp_path / "in" / "b.ksp").exit_code == 0


def test_warnings_are_shown_and_do_not_fail(tmp_path: Path) -> None:
    result = ksp("check", written(tmp_path, {"a.ksp": WARNED}))
    assert result.exit_code == 0
    assert "warning[KSP0704]" in result.stdout
    assert result.stderr == "1 file checked: 1 warning\n"


def test_advice_is_shown_to_who_asks(tmp_path: Path) -> None:
    written(tmp_path, {"a.ksp": ADVISED})
    hidden, shown = ksp("check", tmp_path), ksp("check", tmp_path, "--advice")
    assert "KSP0702" not in hidden.stdout
    assert hidden.stderr == "1 file checked: 1 piece of advice (--advice shows it)\n"
    assert "advice[KSP0702]" in shown.stdout
    assert shown.stderr == "1 file checked: 1 piece of advice\n"
    assert json.loads(ksp("check", tmp_path, "--output-format", "json").stdout)[0]["severity"] == "advice"
    assert json.loads(ksp("check", tmp_path, "--output-format", "json", "--no-advice").stdout) == []


def test_json_is_a_list_of_all_mistakes(tmp_path: Path) -> None:
    written(tmp_path, {"taints.ksp": WRONG})
    result = ksp("check", tmp_path, "--output-format", "json")
    first = json.loads(result.stdout)[0]
    assert result.exit_code == 1
    assert (first["code"], first["line"], first["column"]) == ("KSP0201", 3, 50)
    assert first["file"] == str(tmp_path / "taints.ksp")


def test_github_shows_mistakes_beside_the_lines(tmp_path: Path) -> None:
    written(tmp_path, {"taints.ksp": WRONG})
    result = ksp("check", tmp_path, "--output-format", "github")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith(f"::error file={tmp_path}/taints.ksp,line=3,col=50,")


def test_the_shipped_policies_can_be_checked_and_their_warnings_are_not_the_users(tmp_path: Path) -> None:
    assert ksp("check", "ksp:default.ksp").exit_code == 0
    written(tmp_path, {"own.ksp": 'import "ksp:default.ksp"\n'})
    assert ksp("check", tmp_path).stdout == ""


FIXTURES = """test "a" {
  node n from "fixtures/n.yaml"
  pod p { requests: {cpu: 1} }
  expect Room admits p on n
}
"""


def test_fixtures_of_tests_are_opened(tmp_path: Path) -> None:
    room(tmp_path, FIXTURES)
    missing = ksp("check", tmp_path)
    assert missing.exit_code == 1
    assert "error[KSP0602]: the fixture of `n`: " in missing.stdout
    assert "there is no such file or folder" in missing.stdout
    written(tmp_path, {"fixtures/n.yaml": "kind: Node\nmetadata: [\n"})
    assert "fixtures/n.yaml:2: not YAML" in ksp("check", tmp_path).stdout
    written(tmp_path, {"fixtures/n.yaml": "kind: Pod\nmetadata: {name: n}\n"})
    assert "there is no Node in it" in ksp("check", tmp_path).stdout
    written(tmp_path, {"fixtures/n.yaml": "kind: Node\nmetadata: {name: n}\n"})
    assert ksp("check", tmp_path).exit_code == 0


def test_no_fixture_outside_of_the_folder_is_opened(tmp_path: Path) -> None:
    written(tmp_path, {"n.yaml": "secret\n"})
    written(tmp_path, {"in/a.ksp": FIXTURES.replace("fixtures/", "../").replace("Room", "R") + OPEN})
    result = ksp("check", tmp_path / "in")
    assert "a fixture lies beside or below the test" in result.stdout
    assert result.stderr == "1 file checked: 1 error\n"


def test_an_empty_path_is_not_the_folder_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(room(tmp_path).parent)
    for command in ("check", "test"):
        result = ksp(command, "")
        assert result.exit_code == 2
        assert "an empty path names no policy" in result.stderr


def test_what_no_file_puts_to_use_is_warned_of(tmp_path: Path) -> None:
    library = 'predicate R { deny "x" when node.podCount > 1 }\nprovider Base { predicates { R } }\n'
    library += 'predicate S { deny "x" when node.podCount > 1 }\nprofile "base" uses Base {}\nprovider Extra {}\n'
    written(tmp_path, {"lib.ksp": library})
    alone = ksp("check", tmp_path)
    assert alone.exit_code == 0
    assert "warning[KSP0705]: the predicate `S` is in no provider" in alone.stdout
    assert "warning[KSP0705]: the provider `Extra` is in no profile" in alone.stdout
    policy = 'import "lib.ksp"\nprovider Own extends Extra { predicates { S } }\nprofile "own" uses Own {}\n'
    written(tmp_path, {"own.ksp": policy})
    assert ksp("check", tmp_path).stdout == ""
    assert ksp("check", tmp_path / "own.ksp").stdout == ""


@pytest.mark.parametrize("width", [60, 100])
def test_a_terminal_is_not_overfilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr("ksp.cli.check.width", lambda _: width)
    monkeypatch.chdir(written(tmp_path, {"a.ksp": WRONG.replace("taint ${", "a very long reason " * 9 + "${")}))
    lines = ksp("check", "a.ksp").stdout.splitlines()
    assert any("…" in line for line in lines)
    assert max(map(len, lines)) <= width


def test_amounts_in_tests_are_read(tmp_path: Path) -> None:
    given = 'test "a" {\n  node n { allocatable: {cpu: "2x"} }\n  pod p {}\n  expect Room admits p on n\n}\n'
    result = ksp("check", room(tmp_path, given))
    assert result.exit_code == 1
    assert 'error[KSP0602]: `n`: status.allocatable[cpu]: "2x" is not a quantity' in result.stdout


def test_standard_input_is_a_policy_like_any_other() -> None:
    sound = ksp("check", "-", stdin='import "ksp:nodes.ksp"\n' + TAINTS)
    assert (sound.exit_code, sound.stderr) == (0, "1 file checked: no mistakes\n")
    wrong = ksp("check", "-", stdin='import "other.ksp"\n')
    assert wrong.exit_code == 1
    assert "error[KSP0501]: there is no file `other.ksp` in this source\n --> <stdin>:1:8" in wrong.stdout
    assert "KSP0103" in ksp("check", "-", stdin=b"// \xff").stdout
    assert "KSP0102" in ksp("check", "-", stdin="/" * (256 * 1024 + 1)).stdout
