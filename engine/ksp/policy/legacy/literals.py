"""Values as literals of the policy language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def literal(value: Any) -> str:
    """A bool, a number, a string, or a list or object of those."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return f'"{"".join(map(_character, value))}"'
        case Mapping():
            return "{" + ", ".join(f"{key}: {literal(inner)}" for key, inner in value.items()) + "}"
        case Sequence():
            return f"[{', '.join(map(literal, value))}]"
    raise TypeError(f"no literal for {type(value).__name__}")


def _character(character: str) -> str:
    if character in '\\"$':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
