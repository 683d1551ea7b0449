"""What the functions of the function table do. Each is total: it answers for every argument of its type.

Lists are tuples, maps are dicts; ints are wrapped to 64 bits by who calls where a result can leave them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from ksp.model import requests
from ksp.model import selector as selectors
from ksp.model.info import affinity_term_matches
from ksp.model.int64 import MAX, MIN, wrap

if TYPE_CHECKING:
    from ksp.model.meta import LabelSelector

__all__ = ["affinity_term_matches"]


def quotient(a: int, b: int) -> int:
    """a / b towards zero, wrapped; b is not 0."""
    q = abs(a) // abs(b)
    return wrap(q if (a < 0) == (b < 0) else -q)


def remainder(a: int, b: int) -> int:
    """a % b with the sign of a; b is not 0."""
    r = abs(a) % abs(b)
    return -r if a < 0 else r


def div(a: Any, b: Any, otherwise: Any) -> Any:
    if b == 0:
        return otherwise
    if isinstance(a, float):
        return a / b
    return a // b if a >= 0 and b > 0 else quotient(a, b)


def double_quotient(a: float, b: float) -> float:
    """a / b as IEEE 754 has it."""
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def smallest(*values: Any) -> Any:
    return min(values)


def largest(*values: Any) -> Any:
    return max(values)


def absolute(a: Any) -> Any:
    return a if a == MIN and isinstance(a, int) else abs(a)


def ln(a: float) -> float:
    return math.log(a) if a > 0 else 0.0


def sqrt(a: float) -> float:
    return math.sqrt(a) if a > 0 else 0.0


def rounded(a: float) -> int:
    if not math.isfinite(a):
        return 0
    whole = math.trunc(a)
    return _clamp(whole + (0 if abs(a - whole) < 0.5 else 1 if a > 0 else -1))


def _clamp(n: int) -> int:
    return max(MIN, min(MAX, n))


INT_TEXT = re.compile(r"[+-]?[0-9]{1,30}")
DOUBLE_TEXT = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,5})?")


def to_int(a: Any) -> int:
    if isinstance(a, str):
        return _int_of(a)
    if isinstance(a, int):
        return a
    return _clamp(math.trunc(a)) if math.isfinite(a) else 0


def _int_of(text: str) -> int:
    if not INT_TEXT.fullmatch(text):
        return 0
    value = int(text)
    return value if MIN <= value <= MAX else 0


def to_double(a: Any) -> float:
    if isinstance(a, str):
        return float(a) if DOUBLE_TEXT.fullmatch(a) else 0.0
    return float(a)


def to_string(a: Any) -> str:
    """As CEL writes it: `true`, `-5`, `0.5`, `1e+21`."""
    if isinstance(a, bool):
        return "true" if a else "false"
    return _double_text(a) if isinstance(a, float) else str(a)


def _double_text(a: float) -> str:
    """The shortest decimal that reads back as the same double, as Go's %g writes it with exponents from 21 on."""
    if math.isnan(a):
        return "NaN"
    if math.isinf(a):
        return "+Inf" if a > 0 else "-Inf"
    if a == int(a) and abs(a) < 1e21:
        return f"{'-' if math.copysign(1, a) < 0 else ''}{abs(int(a))}"
    text = repr(a)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{exponent[0] if exponent[0] in '+-' else '+'}{exponent.lstrip('+-').zfill(2)}"


def sha1(text: str) -> str:
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def starts_with(text: str, prefix: str) -> bool:
    return text.startswith(prefix)


def ends_with(text: str, suffix: str) -> bool:
    return text.endswith(suffix)


def contains(text: str, part: str) -> bool:
    return part in text


def split(text: str, separator: str) -> tuple[str, ...]:
    return tuple(text.split(separator)) if separator else tuple(text)


def trim(text: str) -> str:
    return text.strip()


def substring(text: str, start: int, end: int | None = None) -> str:
    return text[max(start, 0) : len(text) if end is None else max(end, 0)]


_LOWER = {code: code + 32 for code in range(65, 91)}
_UPPER = {code: code - 32 for code in range(97, 123)}


def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def index_of(value: Any, item: Any, start: int = 0) -> int:
    if isinstance(value, str):
        return value.find(item, max(start, 0))
    return next((i for i, x in enumerate(value) if x == item), -1)


def last_index_of(value: Any, item: Any, upto: int | None = None) -> int:
    if not isinstance(value, str):
        return next((i for i in range(len(value) - 1, -1, -1) if value[i] == item), -1)
    if upto is None:
        return value.rfind(item)
    return -1 if upto < 0 else value.rfind(item, 0, upto + len(item))


def total(values: Sequence[Any], zero: Any = 0) -> Any:
    """From the left, without compensation: Python's own `sum` compensates doubles from 3.12 on."""
    result = zero
    for value in values:
        result += value
    return wrap(result) if isinstance(result, int) else result


def smallest_of(values: Sequence[Any], otherwise: Any) -> Any:
    return min(values, default=otherwise)


def largest_of(values: Sequence[Any], otherwise: Any) -> Any:
    return max(values, default=otherwise)


def is_sorted(values: Sequence[Any]) -> bool:
    return all(values[i - 1] <= values[i] for i in range(1, len(values)))


def distinct(values: Sequence[Any]) -> tuple[Any, ...]:
    """Each value where it first stands; a NaN is different from every other."""
    if values and isinstance(values[0], float):
        return tuple(value for i, value in enumerate(values) if not any(value == other for other in values[:i]))
    try:
        return tuple(dict.fromkeys(values))
    except TypeError:  # structs and lists of structs have no hash
        return tuple(value for i, value in enumerate(values) if value not in values[:i])


def keys(value: Mapping[Any, Any]) -> tuple[Any, ...]:
    return tuple(sorted(value))


def values(value: Mapping[Any, Any]) -> tuple[Any, ...]:
    return tuple(value[key] for key in sorted(value))


def size(value: Any) -> int:
    return len(value)


@lru_cache(maxsize=1024)
def pattern(text: str) -> Any:
    """A compiled RE2 pattern: linear time, bounded memory. Raises re2.error."""
    import re2  # noqa: PLC0415 - takes 30 ms that most commands do not need

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    return re2.compile(text, options=options)


def pattern_found(text: str, wanted: str) -> bool:
    return pattern(wanted).search(text) is not None


def selector(labels: dict[str, str]) -> LabelSelector:
    return selectors.selector_of(labels)


selector_matches = selectors.label_selector_matches
selector_is_empty = selectors.label_selector_is_empty
selector_error = selectors.label_selector_error
term_matches_node = selectors.node_selector_term_matches_node
term_matches_labels = selectors.node_selector_term_matches_labels
requirement_matches = selectors.requirement_matches
requirement_error = selectors.requirement_error
tolerates = selectors.toleration_tolerates

is_basic_resource = requests.is_basic_resource
is_extended_resource = requests.is_extended_resource


def parser(kind: type) -> Callable[[str], Any]:
    """The function behind `TYPE.parse(json)`."""
    from ksp.model.decode import DecodeError, decode  # noqa: PLC0415

    empty = kind()

    @lru_cache(maxsize=4096)
    def parse(text: str) -> Any:
        if not text:
            return empty
        try:
            return decode(kind, text.encode())
        except (DecodeError, msgspec.MsgspecError, UnicodeEncodeError):
            return empty

    return parse
