"""Files to sources: all that can be wrong with a file before it is parsed."""

from __future__ import annotations

import difflib
import os
import re
import stat
from pathlib import Path

from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.text import Source, Span

MAX_FILE_BYTES = 256 * 1024

_FIRST_WORD = re.compile(
    r"(?:[ \t\r\n\ufeff]++|//[^\n]*+|(?P<hash>#)[^\n]*+)*+"
    r"(?:(?P<word>[A-Za-z]{2,20})(?=[ \t\r\n\"']|//|\Z)|\Z)"
)
_DECLARATIONS = ("import", "const", "fn", "predicate", "priority", "provider", "profile", "test")
_OTHERS = ("param", "let", "view", "deny", "fail", "stop", "for", "collect", "prefilter", "prescore", "score", "rule")
"""Words that a policy cannot start with, but somebody who writes one might."""


def looks_like_policy(text: str) -> bool:
    """Does a text start with a declaration's keyword, or a likely misspelling, or is it empty but for comments? What
    does not is never quoted: it may be any file of the machine, given by mistake.

    `#` starts comments in many languages and not in this one: a keyword has to follow, and its comments are reported.
    """
    match = _FIRST_WORD.match(text)
    if match is None:
        return False
    word = match["word"]
    if match["hash"]:
        return word in _DECLARATIONS
    return not word or word in _OTHERS or bool(difflib.get_close_matches(word.lower(), _DECLARATIONS, 1, 0.75))


def _refused(code: str, message: str, name: str, help: str = "") -> Diagnostic:
    """The file is not quoted: the span is of an empty text with its name."""
    return Diagnostic(code, Severity.ERROR, message, Span(Source(name, ""), 0, 0), help=help)


def too_large(name: str) -> Diagnostic:
    message = f"the text is larger than {MAX_FILE_BYTES // 1024} KiB"
    return _refused("KSP0102", message, name, "split it and `import` the parts")


def not_a_policy(name: str) -> Diagnostic:
    help = "a policy starts with a declaration, such as `import`, `predicate` or `provider`, or with a comment, `// …`"
    return _refused("KSP0104", "this is not a ksp policy", name, help)


def read_source(path: str | Path, shown: str = "") -> Source | Diagnostic:
    """The text of a file, or why it cannot be a policy. `shown` is its name for the user, by default the path as given.

    A large file is not read to its end, and a pipe or a device is not waited for.
    """
    name = shown or str(path)
    try:
        content = _read(path)
    except IsADirectoryError:
        return _refused("KSP0101", "cannot read the file: it is a directory", name)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return _refused("KSP0101", f"cannot read the file: {reason[:1].lower()}{reason[1:]}", name)
    if content is None:
        return _refused("KSP0101", "cannot read the file: it is a pipe or a device", name)
    return source_in(content, name)


def _read(path: str | Path) -> bytes | None:
    """At most one byte more than is allowed; None if it is no ordinary file."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        if not stat.S_ISREG(mode):
            return None
        with open(handle, "rb", closefd=False) as file:
            return file.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(handle)


def source_in(content: bytes, name: str) -> Source | Diagnostic:
    """The text in bytes that were read, or why it cannot be a policy. One byte more than is allowed is enough."""
    if len(content) > MAX_FILE_BYTES:
        return too_large(name)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return _refused("KSP0103", f"the file is not UTF-8 text: line {line}", name, "save it as UTF-8")
    return source_of(text, name)


def source_of(text: str, name: str) -> Source | Diagnostic:
    """A text that is in memory already, or why it cannot be a policy."""
    if len(text) > MAX_FILE_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_FILE_BYTES:
        return too_large(name)
    return Source(name, text) if looks_like_policy(text) else not_a_policy(name)
