"""Policies in files: what belongs to them, and that all of it is of one moment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cluster.reloads import mounted

from ksp.runtime.reload import files as reading
from ksp.runtime.reload import sources
from ksp.runtime.reload.source import MAX_FILES, SourceError
from ksp.runtime.reload.sources import FileSource, FolderSource, LegacyFileSource

A = "// the rule a\n"
B = "// the rule b\n"


def files(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


# ---- what belongs together


def test_a_file_comes_with_what_it_imports_its_tests_and_their_fixtures(tmp_path: Path) -> None:
    files(
        tmp_path,
        main_ksp='import "lib/a.ksp"\nimport "ksp:nodes.ksp"\nimport "missing.ksp"\n',
        main_test_ksp='import "main.ksp"\ntest "t" {\n  node n from "nodes.yaml"\n}\n',
        lib__a_ksp='import "b.ksp"\n',
        lib__b_ksp=B,
        nodes_yaml="kind: Node\n",
        other_ksp=A,
    )
    texts = FileSource(str(tmp_path / "main.ksp")).read()
    assert sorted(texts.files) == ["lib/a.ksp", "lib/b.ksp", "main.ksp", "main.test.ksp", "nodes.yaml"]
    assert (texts.roots, texts.legacy, texts.shown) == (("main.ksp",), "", str(tmp_path))


def test_a_folder_has_all_policies_below_it_and_the_tests_are_not_loaded(tmp_path: Path) -> None:
    files(tmp_path, a_ksp=A, lib__b_ksp=B, a_test_ksp="", notes_txt="", _hidden_ksp=A)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.ksp").write_text(A)
    texts = FolderSource(str(tmp_path)).read()
    assert texts.roots == ("a.ksp", "lib/b.ksp")
    assert sorted(texts.files) == ["a.ksp", "a.test.ksp", "lib/b.ksp"]


def test_a_legacy_policy_is_one_text(tmp_path: Path) -> None:
    texts = LegacyFileSource(str(files(tmp_path, policy_json="{}") / "policy.json")).read()
    assert (dict(texts.files), texts.roots, texts.legacy) == ({"policy.json": "{}"}, (), "policy.json")


def test_a_link_to_a_file_elsewhere_imports_what_lies_there(tmp_path: Path) -> None:
    files(tmp_path, there__main_ksp='import "b.ksp"\n', there__b_ksp=B)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "policy.ksp").symlink_to(tmp_path / "there" / "main.ksp")
    assert sorted(FileSource(str(tmp_path / "here" / "policy.ksp")).read().files) == ["b.ksp", "main.ksp"]


# ---- what cannot be read


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.ksp", None, "cannot read the file: no such file or directory"),
        ("bytes.ksp", b"// a\n\xff", "the file is not UTF-8 text: line 2"),
        ("large.ksp", b"/" * (256 * 1024 + 1), "cannot read the file: it is larger than 256 KiB"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError) as error:
        FileSource(str(tmp_path / name)).read()
    assert [found.message for found in error.value.diagnostics] == [said]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "policy.ksp")
    with pytest.raises(SourceError, match="it is a pipe or a device"):
        FileSource(str(tmp_path / "policy.ksp")).read()


def test_a_folder_and_a_file_are_not_the_same(tmp_path: Path) -> None:
    files(tmp_path, a_ksp=A)
    with pytest.raises(SourceError, match="is a folder: name it with --policy-dir"):
        FileSource(str(tmp_path)).read()
    with pytest.raises(SourceError, match="is not a folder: name a file with --policy-file"):
        FolderSource(str(tmp_path / "a.ksp")).read()
    files(tmp_path, c_yaml="kind: KubeSchedulerConfiguration")
    with pytest.raises(SourceError, match=r"ends in \.ksp: a KubeSchedulerConfiguration goes with --config"):
        FileSource(str(tmp_path / "c.yaml")).read()


def test_a_file_is_read_again_after_a_folder_was_in_its_place(tmp_path: Path) -> None:
    source = FileSource(str(files(tmp_path, a_ksp=A) / "a.ksp"))
    source.read()
    (tmp_path / "a.ksp").unlink()
    (tmp_path / "a.ksp").mkdir()
    with pytest.raises(SourceError, match="is a folder"):
        source.read()
    assert source.marks() == source.read_at
    (tmp_path / "a.ksp").rmdir()
    files(tmp_path, a_ksp=B)
    assert source.marks() != source.read_at
    assert dict(source.read().files) == {"a.ksp": B}


def test_a_link_that_leads_to_itself_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.ksp").symlink_to(tmp_path / "a.ksp")
    for source in (FileSource(str(tmp_path / "a.ksp")), FolderSource(str(tmp_path))):
        with pytest.raises(SourceError, match="cannot read the file: "):
            source.read()
        assert source.marks() == source.read_at


def test_a_folder_below_that_may_not_be_looked_into_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest would be another policy, without profiles that are there."""
    source, scandir = FolderSource(str(files(tmp_path, a_ksp=A, more__b_ksp=B))), os.scandir
    source.read()

    def refusing(path: str) -> object:
        if str(path).endswith("more"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing)
        assert source.marks() != source.read_at
        with pytest.raises(SourceError, match=r"more: cannot be read: Permission denied"):
            source.read()
        assert source.marks() == source.read_at
    assert source.marks() != source.read_at


def test_a_folder_without_policies_and_one_that_is_not_there_say_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no policy"):
        FolderSource(str(tmp_path)).read()
    with pytest.raises(SourceError, match=r"cannot read the folder: No such file"):
        FolderSource(str(tmp_path / "absent")).read()


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    files(tmp_path, out__b_ksp=B, policies__a_ksp=A)
    (tmp_path / "policies" / "b.ksp").symlink_to(tmp_path / "out" / "b.ksp")
    with pytest.raises(SourceError, match="it is a link out of the folder"):
        FolderSource(str(tmp_path / "policies")).read()


def test_a_folder_that_may_not_be_looked_into_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = FileSource(str(files(tmp_path, a_ksp=A) / "a.ksp"))

    def refused(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os.path, "realpath", refused)
        with pytest.raises(SourceError, match=r"a.ksp: cannot be read: Permission denied"):
            source.read()
        assert source.marks() == source.read_at
    assert source.marks() != source.read_at


def test_all_files_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path, a_ksp=A, b_ksp=B)
    monkeypatch.setattr(reading, "MAX_BYTES", len(A) + len(B) - 1)
    with pytest.raises(SourceError, match="larger than"):
        FolderSource(str(tmp_path)).read()


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        (tmp_path / f"{number}.ksp").touch()
    with pytest.raises(SourceError, match=f"more than {MAX_FILES} files"):
        FolderSource(str(tmp_path)).read()


# ---- one moment


def test_a_mounted_config_map_is_read_where_its_link_leads(tmp_path: Path) -> None:
    mounted(tmp_path, 1, {"a.ksp": A, "b.ksp": B})
    source = FolderSource(str(tmp_path))
    assert dict(source.read().files) == {"a.ksp": A, "b.ksp": B}
    assert dict(FileSource(str(tmp_path / "a.ksp")).read().files) == {"a.ksp": A}
    before = source.marks()
    mounted(tmp_path, 2, {"a.ksp": B, "b.ksp": A})
    assert source.marks() != before
    assert dict(source.read().files) == {"a.ksp": B, "b.ksp": A}


def test_a_swap_in_the_middle_of_reading_gives_no_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted(tmp_path, 1, {"a.ksp": A, "b.ksp": A})
    read, swaps = reading._content, iter([2])

    def swapping(path: Path, most: int) -> tuple[bytes, str]:
        found = read(path, most)
        for number in swaps:
            mounted(tmp_path, number, {"a.ksp": B, "b.ksp": B})
            for old in (tmp_path / "..2024_1").iterdir():
                old.unlink()
        return found

    monkeypatch.setattr(reading, "_content", swapping)
    assert dict(FolderSource(str(tmp_path)).read().files) == {"a.ksp": B, "b.ksp": B}


def test_files_that_change_all_the_time_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files(tmp_path, a_ksp=A) / "a.ksp"
    read, sizes = reading._content, iter(range(100))

    def growing(target: Path, most: int) -> tuple[bytes, str]:
        path.write_text(A + "\n" * next(sizes))
        return read(target, most)

    monkeypatch.setattr(reading, "_content", growing)
    with pytest.raises(SourceError, match="the files change all the time"):
        FileSource(str(path)).read()
    assert next(sizes) == sources.ATTEMPTS


# ---- marks


def test_marks_differ_after_each_change_that_matters_and_not_after_a_read(tmp_path: Path) -> None:
    files(tmp_path, main_ksp='import "lib.ksp"\n', lib_ksp=A, other_ksp=A)
    source = FileSource(str(tmp_path / "main.ksp"))
    source.read()
    seen = [source.marks()]
    assert seen == [source.read_at]
    files(tmp_path, other_ksp=B)
    assert source.marks() == source.read_at
    files(tmp_path, lib_ksp=A + B)
    seen.append(source.marks())
    (tmp_path / "lib.ksp").unlink()
    seen.append(source.marks())
    files(tmp_path, main_test_ksp="")
    seen.append(source.marks())
    assert len(set(seen)) == len(seen)


def test_what_cannot_be_read_is_not_read_again_until_it_changes(tmp_path: Path) -> None:
    source = FileSource(str(tmp_path / "main.ksp"))
    with pytest.raises(SourceError):
        source.read()
    assert source.marks() == source.read_at
    files(tmp_path, main_ksp=A)
    assert source.marks() != source.read_at
    assert dict(source.read().files) == {"main.ksp": A}
