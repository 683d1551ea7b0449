"""Plain values as the types that a Policy's fields have. What does not fit is noted, with its pointer, and read as
absent; null is absent."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ksp.check.report import nearest
from ksp.policy.legacy.mistakes import Mistake, Steps, mistake

T = TypeVar("T")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_INT32: Final = 2**31
_INT64: Final = 2**63


@dataclass(slots=True)
class Shapes:
    """Reads values, and notes what is wrong with them."""

    mistakes: list[Mistake] = field(default_factory=list)

    def note(self, message: str, steps: Steps, hint: str = "") -> None:
        self.mistakes.append(mistake(message, steps, hint))

    def fields(self, value: Any, steps: Steps, known: Collection[str]) -> dict[str, Any]:
        """An object's fields that are known and not null. Others are noted: kube-scheduler reads strictly."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._mismatch("an object", value, steps)
            return {}
        for name in value:
            if name not in known:
                near = nearest(str(name), known)
                self.note(f"found unknown field: {name}", (*steps, name), f"did you mean `{near}`?" if near else "")
        return {name: value[name] for name in known if value.get(name) is not None}

    def items(self, value: Any, steps: Steps, read: Callable[[Any, Steps], T]) -> tuple[T, ...]:
        """A list, each item read."""
        if value is None:
            return ()
        if not isinstance(value, list):
            self._mismatch("a list", value, steps)
            return ()
        return tuple(read(item, (*steps, i)) for i, item in enumerate(value))

    def text(self, value: Any, steps: Steps) -> str:
        if not isinstance(value, str | None):
            self._mismatch("a string", value, steps)
        elif value and _SURROGATE.search(value):
            self.note("not text: half of a surrogate pair", steps)
        elif value:
            return value
        return ""

    def boolean(self, value: Any, steps: Steps) -> bool:
        if isinstance(value, bool):
            return value
        if value is not None:
            self._mismatch("true or false", value, steps)
        return False

    def integer(self, value: Any, steps: Steps, hint: str = "") -> int:
        """A number of 64 bits."""
        return self._whole(value, steps, _INT64, hint)

    def small(self, value: Any, steps: Steps) -> int:
        """A number of 32 bits."""
        return self._whole(value, steps, _INT32, "")

    def _whole(self, value: Any, steps: Steps, limit: int, hint: str) -> int:
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool):
            self._mismatch("a whole number", value, steps, hint)
            return 0
        if not -limit <= value < limit:
            self.note(f"the number {value} does not fit in {limit.bit_length()} bits", steps)
            return 0
        return value

    def _mismatch(self, wanted: str, value: Any, steps: Steps, hint: str = "") -> None:
        self.note(f"must be {wanted}, not {_what(value)}", steps, hint)


def _what(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the string "{value if len(value) <= 40 else value[:37] + "..."}"'
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
    return "that"


def by_lower_case(value: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Fields whose names match whatever their case, as Go's own JSON decoder takes them: lower case, as written,
    value."""
    for name, inner in value.items():
        yield str(name).lower(), str(name), inner
