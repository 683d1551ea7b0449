"""Strategic merge patches: merge patches that know which lists are joined, and by what key of their items.

The rules are apimachinery's `util/strategicpatch`, as the server applies them; which lists are joined says `api_types`.
Directives: `$patch` (delete, replace) in objects and in items of lists, `$retainKeys`, `$setElementOrder/LIST` and
`$deleteFromPrimitiveList/LIST` beside a list.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ksp.apiserver.codec.api_types import Field, ListOf, MapOf, Struct, StructRef, Type, Types

Json = dict[str, Any]

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


class StrategicPatchError(ValueError):
    """A patch that breaks the rules of directives. `bad_format`: the request is at fault, not the server (400)."""

    def __init__(self, message: str, *, bad_format: bool = True) -> None:
        super().__init__(message)
        self.bad_format = bad_format


def apply(original: Json, patch: Json, struct: Struct, types: Types) -> Json:
    """What `patch` makes of `original`; both stay as they are. Raises StrategicPatchError."""
    return _Merge(types).objects(original, patch, StructRef(struct.id))


class _Merge:
    def __init__(self, types: Types) -> None:
        self._types = types

    def objects(self, original: Json, patch: Json, of: Type | None) -> Json:
        if _DIRECTIVE in patch:
            return _replaced(patch)
        patch = dict(patch)
        out = _retained(original, patch)
        for name in [name for name in patch if name.startswith(_ORDER)]:
            self._order(out, patch, name.removeprefix(_ORDER), patch.pop(name), of)
        for name, value in patch.items():
            self._member(out, name, value, of)
        return out

    def _order(self, out: Json, patch: Json, name: str, order: Any, of: Type | None) -> None:
        """Merges the list `name` and puts its items into the order that the patch gives."""
        if not isinstance(order, list):
            raise StrategicPatchError("invalid patch format of setElementOrder list")
        changes = patch.pop(name, None)
        before = out.get(name)
        if before is None and changes is None:
            return
        if not isinstance(before, list | None) or not isinstance(changes, list | None):
            raise StrategicPatchError("invalid patch format of setElementOrder list")
        field = self._field(of, name)
        key = _key_of(field.merge_key if field else "")
        if before is None:
            merged = _without_directives(changes or ())
        else:
            merged = list(before) if changes is None else self._lists(before, changes, field)
        out[name] = _in_order(merged, order, before or [], key)

    def _member(self, out: Json, name: str, value: Any, of: Type | None) -> None:
        if name.startswith(_DELETE):
            _delete_scalars(out, name.removeprefix(_DELETE), value)
            return
        if value is None:
            out.pop(name, None)
            return
        field = self._field(of, name)
        before = out.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            out[name] = self.objects(before, value, self._inner(of, field))
        elif isinstance(value, list) and isinstance(before, list):
            out[name] = self._lists(before, value, field)
        else:
            out[name] = _new(value)

    def _lists(self, before: list[Any], patch: list[Any], field: Field | None) -> list[Any]:
        if field is None or not field.merge:
            return _without_directives(patch)
        if not field.merge_key:
            there = {_token(item) for item in before}
            merged = [*before, *(item for item in patch if _token(item) not in there)]
            return _in_order(merged, patch, before, _identity)
        return self._keyed(before, patch, field)

    def _keyed(self, before: list[Any], patch: list[Any], field: Field) -> list[Any]:
        """Items with the same key are merged, others come in front of those that follow in the server's order."""
        kept, changes, replaced = _special(before, patch, field.merge_key)
        if replaced:
            return changes
        key = _key_of(field.merge_key)
        of = field.type.item if isinstance(field.type, ListOf) else None
        merged = list(kept)
        places = _places(merged, key)
        for item in changes:
            place = places.get(_token(_given_key(item, field.merge_key)))
            if place is None:
                places[_token(key(item))] = len(merged)
                merged.append(_new(item))
            else:
                merged[place] = self.objects(merged[place], item, of)
        return _in_order(merged, changes, before, key)

    def _field(self, of: Type | None, name: str) -> Field | None:
        return self._types[of.id].fields.get(name) if isinstance(of, StructRef) else None

    @staticmethod
    def _inner(of: Type | None, field: Field | None) -> Type | None:
        if field is not None:
            return field.type
        return of.value if isinstance(of, MapOf) else None


def _replaced(patch: Json) -> Json:
    match patch[_DIRECTIVE]:
        case "replace":
            return {name: value for name, value in patch.items() if name != _DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise StrategicPatchError(f"unknown patch type: {_DIRECTIVE} {other} in map", bad_format=False)


def _retained(original: Json, patch: Json) -> Json:
    """A copy of `original` with the keys that `$retainKeys` names, if it is there; it is taken out of `patch`."""
    if _RETAIN not in patch:
        return dict(original)
    keys = patch.pop(_RETAIN)
    given = {name.removeprefix(_ORDER).removeprefix(_DELETE) for name, value in patch.items() if value is not None}
    if not isinstance(keys, list) or any(name not in keys for name in given):
        raise StrategicPatchError("invalid patch format of retainKeys")
    return {name: value for name, value in original.items() if name in keys}


def _delete_scalars(out: Json, name: str, values: Any) -> None:
    if not isinstance(values, list):
        raise StrategicPatchError("invalid patch format of primitive list")
    if isinstance(before := out.get(name), list):
        gone = {_token(value) for value in values}
        out[name] = [item for item in before if _token(item) not in gone]


def _special(before: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any], bool]:
    """What is left of `before`, the items of the patch without directives, and whether they replace the list."""
    gone: set[bytes] = set()
    changes, replaced = [], False
    for item in patch:
        if not isinstance(item, dict):
            raise StrategicPatchError(f"map: {item} does not contain declared merge key: {merge_key}", bad_format=False)
        match item.get(_DIRECTIVE):
            case None:
                changes.append(item)
            case "delete":
                gone.add(_token(_given_key(item, merge_key)))
            case "replace":
                replaced = True
            case other:
                raise StrategicPatchError(f"unknown patch type: {_DIRECTIVE} {other} in list", bad_format=False)
    return [old for old in before if _token(old.get(merge_key)) not in gone], changes, replaced


def _given_key(item: Mapping[str, Any], merge_key: str) -> Any:
    if merge_key not in item:
        text = "map[" + " ".join(f"{name}:{item[name]}" for name in sorted(item)) + "]"
        raise StrategicPatchError(f"map: {text} does not contain declared merge key: {merge_key}", bad_format=False)
    return item[merge_key]


def _new(value: Any) -> Any:
    """A value that the object did not have: nulls in it and directives say nothing."""
    if isinstance(value, dict):
        return {name: _new(inner) for name, inner in value.items() if inner is not None and not name.startswith("$")}
    return _without_directives(value) if isinstance(value, list) else value


def _without_directives(items: Sequence[Any]) -> list[Any]:
    return [_new(item) for item in items if not (isinstance(item, dict) and item.get(_DIRECTIVE) == "delete")]


def _identity(item: Any) -> Any:
    return item


def _key_of(merge_key: str) -> Callable[[Any], Any]:
    if not merge_key:
        return _identity
    return lambda item: item.get(merge_key) if isinstance(item, dict) else None


def _in_order(merged: list[Any], wanted: list[Any], server: list[Any], key: Callable[[Any], Any]) -> list[Any]:
    """Items named in `wanted` in that order, the others in the server's; where both are known, the server's decides.

    This is `normalizeElementOrder`: two sorted lists are zipped, and an item of the patch comes first unless both heads
    stand in the server's list and the server's head stood before it.
    """
    wanted_places, server_places = _places(wanted, key), _places(server, key)
    tokens = [(_token(key(item)), item) for item in merged]
    ours = deque(sorted((row for row in tokens if row[0] in wanted_places), key=lambda row: wanted_places[row[0]]))
    rest = (row for row in tokens if row[0] not in wanted_places)
    theirs = deque(sorted(rest, key=lambda row: server_places.get(row[0], -1)))
    out: list[Any] = []
    while ours and theirs:
        left, right = server_places.get(theirs[0][0]), server_places.get(ours[0][0])
        first = theirs if left is not None and right is not None and left < right else ours
        out.append(first.popleft()[1])
    return [*out, *(item for _, item in (*ours, *theirs))]


def _token(key: Any) -> bytes:
    """Equal for equal keys, and fit for a set, as lists and objects are not."""
    return msgspec.json.encode(key, order="sorted")


def _places(items: Sequence[Any], key: Callable[[Any], Any]) -> dict[bytes, int]:
    """Where each key stands first."""
    found: dict[bytes, int] = {}
    for place, item in enumerate(items):
        found.setdefault(_token(key(item)), place)
    return found
