"""Reads objects as a Go server does: by the fields and types of `api_types`.

`decode` brings a JSON object into the form in which the server would write it: unknown fields are dropped, as is what
Go takes for nothing; structs that Go always writes are there; quantities and times are canonical. What cannot be
read is a FieldError in the words of the emulated version: 1.19 reads with json-iterator, which quotes the text around
the mistake (`FieldError.within`), later ones with sigs.k8s.io/json.
"""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, Final

from ksp.apiserver.codec import go_times, quantities
from ksp.apiserver.codec.api_types import Field, ListOf, MapOf, Scalar, Struct, Type, Types, types_of
from ksp.apiserver.codec.json_places import place_of
from ksp.apiserver.status import bad_request
from ksp.apiserver.strategy import DecodeError

Json = dict[str, Any]
Path = tuple[str | int, ...]
Chain = tuple[tuple[Struct, Field] | ListOf, ...]
"""The fields and lists that lead to a value."""

_ITERATOR_MINOR: Final = 19
"""The last minor version whose texts are json-iterator's here."""


class FieldError(DecodeError):
    """What stands at `path` cannot be read."""

    def __init__(self, message: str, path: Path, *, at_start: bool = False, quotes: bool = False) -> None:
        super().__init__(message)
        self.path = path
        self._at_start = at_start
        self._quotes = quotes

    def within(self, text: str) -> str:
        """The message with the place in the JSON text that was read, where the version tells it."""
        if not self._quotes:
            return str(self)
        start, end = place_of(text, self.path)
        head = start + 1 if self._at_start else end
        near, far = (text[max(0, head - size) : head + size] for size in (10, 50))
        place = f"error found in #{min(10, head)} byte of ...|{near}|..., bigger context ...|{far}|..."
        return f"{self}, {place}"


def decode(obj: Json, struct: Struct, minor: int) -> tuple[Json, list[str]]:
    """The canonical form of `obj`, which stays as it is, and a sentence for each unknown field. Raises FieldError."""
    decoder = _Decoder(types_of(minor), minor)
    return decoder.struct(obj, struct, (), ()), decoder.unknown


def decode_part(body: Json, struct: Struct, minor: int, expected: str) -> Json:
    """The canonical form of the body of a subresource. Raises ApiStatusError, 400."""
    try:
        return decode(body, struct, minor)[0]
    except FieldError as error:
        version = str(body.get("apiVersion", "")).rpartition("/")[2]
        where = f'{expected} in version "{version}" cannot be handled as a {expected}: '
        raise bad_request(where + error.within(json.dumps(body))) from error


class _MapKey(str):
    """A step of a path that is no field: encoding/json does not tell keys of maps."""

    __slots__ = ()


class _UnreadableError(Exception):
    """A value does not fit a scalar type. `at_start`: seen at its first character."""

    def __init__(self, message: str, *, at_start: bool = False) -> None:
        super().__init__(message)
        self.at_start = at_start


class _Decoder:
    def __init__(self, types: Types, minor: int) -> None:
        self._types = types
        self._iterator = minor <= _ITERATOR_MINOR
        self.unknown: list[str] = []

    def struct(self, value: Any, struct: Struct, path: Path, chain: Chain) -> Json:
        """`chain` holds what leads here; its Go names are told where something cannot be read."""
        if value is None:
            value = {}
        if not isinstance(value, dict):
            expects = f"readObjectStart: expect {{ or n, but found {_first_character(value)}"
            raise self._refusal(value, struct.go_type, expects, path, chain)
        for name in value:
            if name not in struct.fields:
                self.unknown.append(f'unknown field "{_dotted((*path, name))}"')
        out = {}
        for name, field in struct.fields.items():
            given = value.get(name)
            if given is None and not field.always:
                continue
            read = self._value(given, field.type, (*path, name), (*chain, (struct, field)))
            if field.always or _is_kept(read, field):
                out[name] = read
        return out

    def _value(self, value: Any, of: Type, path: Path, chain: Chain) -> Any:
        match of:
            case Scalar(name):
                return self._scalar(value, name, path, chain)
            case ListOf(item):
                return self._list(value, item, path, chain)
            case MapOf(item):
                return self._map(value, item, path, chain)
        return self.struct(value, self._types[of.id], path, chain)

    def _scalar(self, value: Any, name: str, path: Path, chain: Chain) -> Any:
        if value is None:
            return _ZEROS.get(name)
        try:
            return _READERS[name](value)
        except _UnreadableError as error:
            if self._iterator:
                expects = _EXPECTS.get(name, "")
                text = f"{expects} {_found(value, name)}" if error.at_start else f"unmarshalerDecoder: {error}"
                raise FieldError("".join(_steps(chain)) + text, path, at_start=error.at_start, quotes=True) from error
            if error.at_start or isinstance(error, _NotATimeError):
                go_type = _GO_TYPES.get(name, name)
                raise self._mismatch(value, go_type, path, chain) from error
            raise FieldError(str(error), path) from error

    def _list(self, value: Any, item: Type, path: Path, chain: Chain) -> list[Any] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            expects = f"decode slice: expect [ or n, but found {_first_character(value)}"
            raise self._refusal(value, _go_name(ListOf(item)), expects, path, chain)
        inner = (*chain, ListOf(item))
        return [self._value(each, item, (*path, index), inner) for index, each in enumerate(value)]

    def _map(self, value: Any, of: Type, path: Path, chain: Chain) -> Json | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            expects = f"ReadMapCB: expect {{ or n, but found {_first_character(value)}"
            raise self._refusal(value, _go_name(MapOf(of)), expects, path, chain)
        return {key: self._value(value[key], of, (*path, _MapKey(key)), chain) for key in sorted(value)}

    def _refusal(self, value: Any, go_type: str, expects: str, path: Path, chain: Chain) -> FieldError:
        if self._iterator:
            return FieldError("".join(_steps(chain)) + expects, path, at_start=True, quotes=True)
        return self._mismatch(value, go_type, path, chain)

    @staticmethod
    def _mismatch(value: Any, go_type: str, path: Path, chain: Chain) -> FieldError:
        """As encoding/json words it: the innermost struct, and the names of the fields that lead to it."""
        fields = ".".join(step for step in path if isinstance(step, str) and not isinstance(step, _MapKey))
        owner = next((step for step in reversed(_steps(chain)) if not step.startswith("[]")), "").partition(": ")[0]
        struct = owner.split(".")[1] if owner.count(".") > 1 else owner
        place = f"Go struct field {struct}.{fields}" if fields else "Go value"
        kind = f"number {value}" if go_type.startswith("int") and json_kind(value) == "number" else json_kind(value)
        return FieldError(f"json: cannot unmarshal {kind} into {place} of type {go_type}", path)


def _steps(chain: Chain) -> list[str]:
    """As json-iterator tells them: `v1.Pod.Spec: `, `[]v1.Container: `."""
    return [
        f"{_go_name(step)}: " if isinstance(step, ListOf) else f"{step[0].go_type}.{step[1].go_name}: "
        for step in chain
    ]


def _is_kept(value: Any, field: Field) -> bool:
    """Whether Go's omitempty leaves it in."""
    if value is None:
        return False
    if isinstance(field.type, Scalar):
        return field.pointer or bool(value) or field.type.name in {"quantity", "intstr", "raw"}
    return bool(value) or not isinstance(field.type, ListOf | MapOf)


def json_kind(value: Any) -> str:
    """A JSON value as encoding/json speaks of it."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _first_character(value: Any) -> str:
    match value:
        case bool():
            return "t" if value else "f"
        case int() | float():
            return str(value)[0]
        case str():
            return '"'
        case list():
            return "["
    return "{"


def _found(value: Any, name: str) -> str:
    return "unexpected character: \ufffd" if name in {"int32", "int64"} else f"but found {_first_character(value)}"


def _go_name(of: Type) -> str:
    match of:
        case Scalar(name):
            return _GO_TYPES.get(name, name)
        case ListOf(item):
            return f"[]{_go_name(item)}"
        case MapOf(item):
            return f"map[string]{_go_name(item)}"
    return ".".join(of.id.split(".")[-2:])


def _dotted(path: Path) -> str:
    """`spec.containers[0].image`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _UnreadableError("", at_start=True)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _UnreadableError("", at_start=True)


def _integer(bits: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1:
            return value
        raise _UnreadableError("", at_start=True)

    return read


def _float(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise _UnreadableError("", at_start=True)


def _bytes(value: Any) -> str:
    text = _string(value)
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except binascii.Error as error:
        message = "illegal base64 data at input byte 0"
        raise _UnreadableError(message) from error


def _quantity(value: Any) -> str:
    if isinstance(value, bool | list | dict):
        raise _UnreadableError(quantities.WRONG_FORM)
    try:
        return quantities.canonical(value.strip() if isinstance(value, str) else repr(value))
    except quantities.QuantityTextError as error:
        raise _UnreadableError(str(error)) from error


def _time(value: Any) -> str:
    return _moment(value, go_times.time_of)


def _micro_time(value: Any) -> str:
    return _moment(value, go_times.micro_time_of)


def _moment(value: Any, read: Callable[[str], str]) -> str:
    if not isinstance(value, str):
        raise _NotATimeError(value)
    try:
        return read(value)
    except go_times.TimeTextError as error:
        raise _UnreadableError(str(error)) from error


class _NotATimeError(_UnreadableError):
    """Both versions unmarshal a time into a string first; only the newer one knows the field in which it stands."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"json: cannot unmarshal {json_kind(value)} into Go value of type string")


def _int_or_string(value: Any) -> int | str:
    if isinstance(value, str):
        return value
    return _integer(32)(value)


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": _string,
    "bool": _bool,
    "int32": _integer(32),
    "int64": _integer(64),
    "float64": _float,
    "bytes": _bytes,
    "quantity": _quantity,
    "time": _time,
    "microtime": _micro_time,
    "intstr": _int_or_string,
    "raw": lambda value: value,
}
_ZEROS: Final = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0, "quantity": "0", "intstr": 0}
_GO_TYPES: Final = {
    "time": "string",
    "microtime": "string",
    "bytes": "[]uint8",
    "quantity": "resource.Quantity",
    "intstr": "int32",
}
_EXPECTS: Final = {
    "string": 'ReadString: expects " or n,',
    "bool": "ReadBool: expect t or f,",
    "int32": "readUint32:",
    "int64": "readUint64:",
    "float64": "readFloat64SlowPath:",
    "intstr": "readUint32:",
    "bytes": "base64Codec: invalid input,",
}
