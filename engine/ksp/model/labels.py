"""What Kubernetes accepts as a label's key and value, and its words for what it does not.

The texts are part of the interface: they appear in events and in the errors of scheduling attempts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_NAME: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_NAME})?"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"

_NAME_RE: Final = re.compile(_NAME)
_VALUE_RE: Final = re.compile(_VALUE)
_SUBDOMAIN_RE: Final = re.compile(_SUBDOMAIN)

_MAX_NAME: Final = 63
_MAX_SUBDOMAIN: Final = 253

_NAME_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_TEXT: Final = (
    "a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with"
    f" an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)


@lru_cache(maxsize=65_536)
def label_value_error(value: str) -> str:
    """Why a text is no label value; "" if it is one."""
    problems = []
    if _size(value) > _MAX_NAME:
        problems.append(_too_long(_MAX_NAME))
    if not _VALUE_RE.fullmatch(value):
        problems.append(_VALUE_TEXT)
    return "; ".join(problems)


@lru_cache(maxsize=65_536)
def qualified_name_error(text: str) -> str:
    """Why a text is no label key (`name` or `example.com/name`); "" if it is one."""
    parts = text.split("/")
    if len(parts) > 2:
        return (
            f"a qualified name {_NAME_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    problems = _prefix_problems(parts[0]) if len(parts) == 2 else []
    name = parts[-1]
    if name == "":
        problems.append("name part must be non-empty")
    elif _size(name) > _MAX_NAME:
        problems.append(f"name part {_too_long(_MAX_NAME)}")
    if not _NAME_RE.fullmatch(name):
        problems.append(f"name part {_NAME_TEXT}")
    return "; ".join(problems)


def _prefix_problems(prefix: str) -> list[str]:
    if prefix == "":
        return ["prefix part must be non-empty"]
    problems = []
    if _size(prefix) > _MAX_SUBDOMAIN:
        problems.append(f"prefix part {_too_long(_MAX_SUBDOMAIN)}")
    if not _SUBDOMAIN_RE.fullmatch(prefix):
        problems.append(f"prefix part {_SUBDOMAIN_TEXT}")
    return problems


def _size(text: str) -> int:
    """Bytes, which is what the limits count."""
    return len(text.encode(errors="surrogatepass"))


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


_ESCAPES: Final = {
    "\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"
}  # fmt: skip


def quote(text: str) -> str:
    """The text in double quotes, with the escapes of Go's `%q`."""
    return '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else _code(char)) for char in text) + '"'


def _code(char: str) -> str:
    n = ord(char)
    return f"\\x{n:02x}" if n < 0x80 else f"\\u{n:04x}" if n < 0x10000 else f"\\U{n:08x}"
