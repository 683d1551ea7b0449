from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ksp.source.diagnostic import Diagnostic
from ksp.source.reading import MAX_FILE_BYTES, looks_like_policy, read_source
from ksp.source.render import render_text
from ksp.source.text import Source, Span


def refused(path: Path) -> Diagnostic:
    result = read_source(path)
    assert isinstance(result, Diagnostic)
    assert result.span == Span(result.span.source, 0, 0)
    assert (result.span.source.name, result.span.source.text) == (str(path), "")
    return result


def written(folder: Path, content: bytes) -> Path:
    path = folder / "a.ksp"
    path.write_bytes(content)
    return path


def test_a_policy_is_read_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path, "// é\r\nconst a = 1\n".encode())
    result = read_source(path)
    assert isinstance(result, Source)
    assert (result.name, result.text) == (str(path), "// é\r\nconst a = 1\n")
    shown = read_source(path, shown="ksp:a.ksp")
    assert isinstance(shown, Source)
    assert shown.name == "ksp:a.ksp"


def test_a_missing_file(tmp_path: Path) -> None:
    diagnostic = refused(tmp_path / "none.ksp")
    assert (diagnostic.code, diagnostic.message) == ("KSP0101", "cannot read the file: no such file or directory")


def test_a_folder(tmp_path: Path) -> None:
    assert refused(tmp_path).message == "cannot read the file: it is a directory"


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_arguments: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", denied)
    assert refused(tmp_path / "a.ksp").message == "cannot read the file: permission denied"


def test_a_name_with_a_zero() -> None:
    assert refused(Path("a\0b")).code == "KSP0101"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert refused(path).message == "cannot read the file: it is a pipe or a device"


def test_size(tmp_path: Path) -> None:
    fits = b"// " + b"x" * (MAX_FILE_BYTES - 3)
    assert isinstance(read_source(written(tmp_path, fits)), Source)
    diagnostic = refused(written(tmp_path, fits + b"x"))
    assert (diagnostic.code, diagnostic.message) == ("KSP0102", "the text is larger than 256 KiB")


def test_what_is_not_utf_8(tmp_path: Path) -> None:
    diagnostic = refused(written(tmp_path, b"const a = 1\n\nconst b = '\xe9'\n"))
    assert (diagnostic.code, diagnostic.message) == ("KSP0103", "the file is not UTF-8 text: line 3")


@pytest.mark.parametrize("content", [b"root:secret:1:0\n", b"\x7fELF\x02secret", b"{}secret", b"test:secret"])
def test_what_is_no_policy_is_never_quoted(tmp_path: Path, content: bytes) -> None:
    diagnostic = refused(written(tmp_path, content))
    assert diagnostic.code == "KSP0104"
    assert "secret" not in render_text([diagnostic], color=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "// only a comment",
        'import "a"',
        "import'a'",
        "\ufeffconst a = 1",
        "// x\n\n/// y\nfn f(): int = 1",
        "predicat P {}",
        "Predicate P {}",
        "rule P {}",
        "deny 'x' when a",
        "provider\n",
        "test// x\n",
        "# x\n\nimport 'a'",
    ],
)
def test_what_looks_like_a_policy(text: str) -> None:
    assert looks_like_policy(text)


@pytest.mark.parametrize(
    "text",
    [
        "root:x",
        "test:x",
        "#!/bin/sh",
        "# a",
        "# a\nroot:x",
        "# a\npredicat P {}",
        "apiVersion: v1",
        "import: a",
        "a = 1",
        "/ const",
        "const=",
        "x" * 100_000,
        "/" + " " * 100_000,
    ],
)
def test_what_does_not(text: str) -> None:
    assert not looks_like_policy(text)
