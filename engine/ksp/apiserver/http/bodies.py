"""From the bytes of a request to an object: JSON or YAML, the right kind, with the words of Go's decoders."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import yaml

from ksp.apiserver.codec.decoder import FieldError, json_kind
from ksp.apiserver.resources import Resource
from ksp.apiserver.state import Call
from ksp.apiserver.status import ApiStatusError, bad_request, plain_error

Json = dict[str, Any]

LIMIT: Final = 3 * 1024 * 1024
"""Bytes of a request's body."""
YAML_LIMIT: Final = 256 * 1024
"""The same for YAML, which takes much longer to read; the server waits for it. kubectl sends JSON."""
_TOO_DEEP: Final = "exceeded max depth"
DEEPEST: Final = 100
"""How deep objects and lists may be nested; the API's types need less than half of it."""

_PROTOBUF: Final = (
    "the embedded API server reads no protobuf, which this client sends: `kubectl create -f` and `kubectl apply -f` "
    "send JSON, and so does `kubectl create ... --dry-run=client -o yaml | kubectl create -f -`"
)

_UNSUPPORTED: Final = (
    "the body of the request was in an unknown format - accepted media types include: application/json, "
    "application/yaml, application/vnd.kubernetes.protobuf"
)


class _Loader(yaml.SafeLoader):
    """YAML as sigs.k8s.io/yaml reads it: timestamps stay texts. Aliases are refused: a few can stand for very much."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not taken")
        if self.depth > DEEPEST:
            raise yaml.YAMLError(_TOO_DEEP)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for letter, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def media_type(call: Call) -> str:
    return call.headers.get("Content-Type", "").partition(";")[0].strip()


def unsupported() -> ApiStatusError:
    return plain_error(415, _UNSUPPORTED, "UnsupportedMediaType")


def too_large(limit: int = LIMIT) -> ApiStatusError:
    return plain_error(413, f"Request entity too large: limit is {limit}", "RequestEntityTooLarge")


def parse(call: Call) -> Any:
    """The JSON of the body. Raises 413, 415, and ValueError with Go's words for what is malformed."""
    match media_type(call):
        case "" | "application/json":
            return parse_json(call.body)
        case "application/yaml":
            return _parse_yaml(call.body)
        case "application/vnd.kubernetes.protobuf":
            raise plain_error(415, _PROTOBUF, "UnsupportedMediaType")
        case _:
            raise unsupported()


def parse_json(text: bytes) -> Any:
    """Raises ValueError with the words of Go's encoding/json."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(_in_go(str(error), text)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if text.count(b"{") + text.count(b"[") > DEEPEST:
        check_depth(found)
    return found


def _parse_yaml(text: bytes) -> Any:
    """What is not JSON in it becomes JSON: numbers as keys, dates, bytes."""
    if len(text) > YAML_LIMIT:
        raise too_large(YAML_LIMIT)
    try:
        found = yaml.load(text, Loader=_Loader)  # noqa: S506 a SafeLoader with fewer rules
        found = msgspec.json.decode(msgspec.json.encode(found))
    except (yaml.YAMLError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"error converting YAML to JSON: {error}") from None
    check_depth(found)
    return found


def check_depth(value: Any) -> None:
    """Raises ValueError for what is nested too deep. Level by level: a recursion would end where the stack does."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _members(each)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _members(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
    return ()


def _in_go(message: str, text: bytes) -> str:
    if not text.strip() or "truncated" in message:
        return "unexpected end of JSON input"
    place = re.search(r"byte (\d+)", message)
    letter = text[int(place[1]) : int(place[1]) + 1].decode("latin-1") if place else ""
    return f"invalid character '{letter}' looking for beginning of value"


def read(call: Call, expected: Resource, *, kind: str = "", api_version: str = "") -> Json:
    """An object of the kind that the path expects, with kind and apiVersion filled in. Raises 400 and 415."""
    wanted, version = kind or expected.kind, api_version or expected.group_version
    try:
        found = parse(call)
    except ValueError as error:
        raise _unrecognized(call.body, wanted, str(error)) from None
    if not isinstance(found, dict):
        raise _unrecognized(call.body, wanted, _not_an_object(found))
    found_version, found_kind = found.get("apiVersion") or version, found.get("kind") or wanted
    if (found_version, found_kind) != (version, wanted):
        raise _wrong_kind(call, str(found_version), str(found_kind), wanted, version)
    found["apiVersion"], found["kind"] = version, wanted
    meta = found.get("metadata")
    if meta is None:
        found["metadata"] = {}
    elif not isinstance(meta, dict):
        where = f'{wanted} in version "{call.resource.version}" cannot be handled as a {wanted}: '
        raise bad_request(f"{where}json: cannot unmarshal {json_kind(meta)} into Go struct field {wanted}.metadata")
    return found


EVICTION_VERSIONS: Final = ("policy/v1", "policy/v1beta1")


def read_eviction(call: Call) -> Json:
    """The Eviction of a POST to pods/eviction; newer versions take both of its versions."""
    served = call.state.catalogue.group_versions("policy")
    default = f"policy/{served[0]}"
    if call.state.version.minor >= 22:
        found = parse_or_none(call)
        if isinstance(found, dict) and found.get("apiVersion") in EVICTION_VERSIONS:
            return read(call, call.resource, kind="Eviction", api_version=found["apiVersion"])
    return read(call, call.resource, kind="Eviction", api_version=default)


def parse_or_none(call: Call) -> Any:
    """What `parse` gives; None for what is malformed."""
    try:
        return parse(call)
    except ValueError:
        return None


def decode(call: Call, obj: Json) -> None:
    """Brings the object into canonical form. Raises 400; unknown fields are refused, told as warnings, or ignored."""
    mode = call.target.query.get("fieldValidation", "Warn" if call.state.version.field_validation else "Ignore")
    where = f'{obj["kind"]} in version "{call.resource.version}" cannot be handled as a {call.resource.kind}: '
    try:
        unknown = call.strategy.decode(obj, call.context())
    except FieldError as error:
        is_yaml = media_type(call) == "application/yaml"
        text = json.dumps(obj) if is_yaml else call.body.decode("utf-8", "replace")
        raise bad_request(f"{where}{error.within(text)}") from error
    if not call.state.version.field_validation or mode == "Ignore":
        return
    if "fieldValidation" in call.target.query and media_type(call) in {"", "application/json"}:
        unknown = [*_duplicates(call.body), *unknown]
    if unknown and mode == "Strict":
        raise bad_request(f"{where}strict decoding error: {', '.join(unknown)}")
    call.warnings.extend(unknown)


def _duplicates(text: bytes) -> list[str]:
    """Fields that stand twice in one object, as `duplicate field "data"`."""
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> Json:
        counts = Counter(name for name, _ in pairs)
        found.extend(f'duplicate field "{name}"' for name, count in counts.items() if count > 1)
        return dict(pairs)

    json.loads(text, object_pairs_hook=note)
    return found


def _unrecognized(body: bytes, wanted: str, why: str) -> ApiStatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {wanted}): "
        f"couldn't get version/kind; json parse error: {why} ({_summary(body)})"
    )


def _summary(body: bytes) -> str:
    """How apimachinery shows data in an error: text of objects, else hexadecimal; 30 of it."""
    if not body:
        return "<empty>"
    if body[:1] == b"{":
        return body.decode("utf-8", "replace") if len(body) <= 30 else f"{body[:30].decode('utf-8', 'replace')} ..."
    return body.hex() if len(body) <= 30 else f"{body[:30].hex()} ..."


_GO_STRUCT: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def _not_an_object(found: Any) -> str:
    return f"json: cannot unmarshal {json_kind(found)} into Go value of type {_GO_STRUCT}"


_SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"


def _wrong_kind(call: Call, api_version: str, kind: str, wanted: str, version: str) -> ApiStatusError:
    short = call.resource.version
    where = f'{kind} in version "{short}" cannot be handled as a {wanted}: '
    if (api_version, kind) in call.state.catalogue.kinds and api_version == version:
        prefix = "core" if "/" not in version else version.partition(".")[0].partition("/")[0]
        return bad_request(f"{where}converting ({short}.{kind}) to ({prefix}.{wanted}): unknown conversion")
    return bad_request(f'{where}no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"')
