"""From a path to what is asked: the verb, the resource, namespace, name and subresource (apiserver's RequestInfo)."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote

from ksp.apiserver.resources import Catalogue, Resource
from ksp.apiserver.status import bad_request


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about. Without a resource it is about a path: discovery, health, what nobody serves."""

    method: str
    path: str
    """Decoded, without the query."""
    query: dict[str, str]
    """The first value of each parameter."""
    is_resource: bool = False
    """The path has the form of a resource, served or not."""
    group: str = ""
    version: str = ""
    plural: str = ""
    resource: Resource | None = None
    """None if it is not served."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    verb: str = ""
    """get, list, watch, create, update, patch, delete, deletecollection; of a path the method in small letters."""
    watch: bool = False


VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})


def is_true(text: str | None) -> bool:
    """How the API reads a bool in a query: whatever is not 0 or false, even nothing, is true."""
    return text is not None and text.lower() not in {"0", "false"}


INT64: Final = range(-(1 << 63), 1 << 63)


def int64_of(text: str) -> int:
    """How the API reads a number in a query; nothing is 0. Raises 400."""
    if not text:
        return 0
    digits = text[1:] if text[0] in "+-" else text
    if not (digits.isascii() and digits.isdigit()):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(digits.lstrip("0")) > 19 or int(text) not in INT64:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def parse(method: str, raw_path: str, catalogue: Catalogue) -> Target:
    path, _, query_text = raw_path.partition("?")
    path = unquote(path)
    query: dict[str, str] = {}
    for name, value in parse_qsl(query_text, keep_blank_values=True):
        query.setdefault(name, value)
    plain = Target(method, path, query, verb=method.lower())
    parts = path.split("/")[1:]
    if not parts:
        return plain
    if parts[0] == "api" and len(parts) >= 3 and parts[1]:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4 and parts[1] and parts[2]:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return plain
    if rest and not rest[-1]:
        rest = rest[:-1]
    if not rest:
        return plain
    return _of_resource(plain, group, version, rest, catalogue)


def _of_resource(plain: Target, group: str, version: str, rest: list[str], catalogue: Catalogue) -> Target:
    legacy_watch = rest[0] == "watch" and len(rest) > 1
    if legacy_watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    plural = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    resource = catalogue.by_path.get((group, version, plural))
    if resource is not None and (len(rest) > 3 or (namespace and not resource.namespaced) or "" in rest[:2]):
        resource = None
    if resource is not None and subresource and subresource not in resource.subresources:
        resource = None
    if resource is not None and resource.namespaced and name and not namespace:
        resource = None
    watch = legacy_watch or (not name and plain.method == "GET" and is_true(plain.query.get("watch")))
    return Target(
        method=plain.method,
        path=plain.path,
        query=plain.query,
        is_resource=True,
        group=group,
        version=version,
        plural=plural,
        resource=resource,
        namespace=namespace or (name if plural == "namespaces" and not group else ""),
        name=name,
        subresource=subresource,
        verb=_verb(plain.method, name, watch=watch),
        watch=watch,
    )


def _verb(method: str, name: str, *, watch: bool) -> str:
    verb = VERBS.get(method, method.lower())
    if watch:
        return "watch"
    if verb == "get" and not name:
        return "list"
    if verb == "delete" and not name:
        return "deletecollection"
    return verb
