"""From a request to its answer: who asks, may they, is it served, in which form; then the handler of the verb."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ksp.apiserver.access import Access
from ksp.apiserver.handlers import binding, deletion, eviction, lists, reviews, writes
from ksp.apiserver.handlers.watches import Watch, open_watch
from ksp.apiserver.http import bodies, discovery
from ksp.apiserver.http.negotiation import negotiate
from ksp.apiserver.http.routing import Target, is_true, parse
from ksp.apiserver.state import Answer, Call, State
from ksp.apiserver.status import method_not_allowed, plain_error

FORMED: Final = frozenset({"status", "finalize"})
"""Subresources that have the form of their object."""

WARNINGS_LIMIT: Final = 4 * 1024
"""Characters of all warnings of an answer."""

_OF_COLLECTIONS: Final = frozenset({"create", "list", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Request:
    """What came over the wire."""

    method: str
    raw_path: str
    headers: Mapping[str, str]
    body: bytes


async def dispatch(state: State, access: Access, request: Request, address: str, warnings: list[str]) -> Answer | Watch:
    """Raises ApiStatusError for whatever is refused. `warnings` gets what the client is told beside the answer."""
    target = parse(request.method, request.raw_path, state.catalogue)
    user = access.authenticate(request.headers)
    access.check(user, target)
    accept = request.headers.get("Accept")
    if not target.is_resource:
        return discovery.answer(state, target, accept, address)
    if target.resource is None:
        if not state.catalogue.group_versions(target.group) and target.group:
            return discovery.answer(state, target, accept, address)
        raise discovery.not_served()
    if not _allowed(state, target):
        raise method_not_allowed()
    form = negotiate(
        accept,
        state.version,
        watch=target.watch,
        streams=target.verb in {"list", "watch"},
        pretty=is_true(target.query.get("pretty")),
    )
    call = Call(state, target, target.resource, user, request.headers, request.body, form, warnings)
    if len(request.body) > bodies.LIMIT:
        raise bodies.too_large()
    _warn(call)
    if target.watch:
        return open_watch(call)
    return await _handle(call, access)


def warning_headers(warnings: list[str]) -> list[tuple[str, str]]:
    """Each once, as RFC 7234 has it. Those with control characters are not sent, nor those beyond the limit."""
    found: list[tuple[str, str]] = []
    room = WARNINGS_LIMIT
    for text in dict.fromkeys(warnings):
        room -= len(text)
        if room < 0:
            break
        if text.isprintable():
            found.append(("Warning", f'299 - "{_quoted(text)}"'))
    return found


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _warn(call: Call) -> None:
    deprecated = call.state.version.deprecation_warnings and call.resource.id == "endpoints"
    if deprecated:
        call.warnings.append("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")


def _allowed(state: State, target: Target) -> bool:
    """Whether the path takes the method."""
    resource = target.resource
    assert resource is not None
    if target.watch and target.method != "GET":
        return False
    if target.subresource:
        allowed = state.catalogue.subresource_verbs[
            (resource.group, resource.version, resource.plural, target.subresource)
        ]
        return target.method != "HEAD" and target.verb in allowed
    if resource.namespaced and not target.namespace and target.verb not in {"list", "watch"}:
        return False
    if target.verb != "watch" and bool(target.name) is (target.verb in _OF_COLLECTIONS):
        return False
    return target.method != "HEAD" and target.verb in resource.verbs


async def _handle(call: Call, access: Access) -> Answer:
    target, resource = call.target, call.resource
    if reviews.serves(resource):
        return reviews.review(call, access)
    if target.subresource and target.subresource not in FORMED:
        return _subresource(call)
    match target.verb:
        case "create" if resource.id == "bindings":
            return _bind(call, "")
        case "create":
            return writes.create(call)
        case "get":
            return await lists.get(call)
        case "list":
            return await lists.list_all(call)
        case "update":
            return writes.update(call)
        case "patch":
            return writes.patch_object(call)
        case "delete":
            return deletion.delete_one(call)
        case _:
            return await deletion.delete_all(call)


def _subresource(call: Call) -> Answer:
    match call.resource.id, call.target.subresource:
        case "pods", "binding":
            return _bind(call, call.target.name)
        case "pods", "eviction":
            return eviction_answer(call)
        case id, subresource:
            text = f"the embedded API server does not serve {id}/{subresource}"
            raise plain_error(501, text, "NotImplemented")


def _bind(call: Call, name: str) -> Answer:
    body = bodies.read(call, call.resource, kind="Binding", api_version="v1")
    code, status = binding.bind(name, body, call.context(dry_run=writes.is_dry(call, "CreateOptions")))
    return Answer(code, status)


def eviction_answer(call: Call) -> Answer:
    code, status = eviction.evict(
        call.target.name,
        bodies.read_eviction(call),
        call.context(dry_run=writes.is_dry(call, "CreateOptions")),
    )
    return Answer(code, status)
