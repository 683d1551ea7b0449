"""Discovery: /version, /api, /apis and below, plain and aggregated; health checks; the list of paths."""

from typing import Any, Final

from ksp.apiserver.http.negotiation import Clause, clauses, negotiate, unacceptable
from ksp.apiserver.http.routing import Target
from ksp.apiserver.resources import Catalogue
from ksp.apiserver.state import Answer, State
from ksp.apiserver.status import ApiStatusError, failure, method_not_allowed

Json = dict[str, Any]

TEXT: Final = "text/plain; charset=utf-8"
NOSNIFF: Final = ("X-Content-Type-Options", "nosniff")


def answer(state: State, target: Target, accept: str | None, address: str) -> Answer:
    """What is no resource. `address` is where clients reach the server. Raises 404, 405 and 406."""
    path = target.path.rstrip("/") or "/"
    if path in {"/healthz", "/livez", "/readyz"} or path.startswith(("/healthz/", "/livez/", "/readyz/")):
        return _health(state, target, path)
    if path.startswith("/openapi/"):
        return _openapi(state, path, accept)
    found = _document(state, path, accept, address)
    if found is None:
        return _nothing_here(state, path)
    if target.method != "GET":
        raise method_not_allowed()
    return found


def _document(state: State, path: str, accept: str | None, address: str) -> Answer | None:
    documents = state.catalogue.documents
    parts = path.strip("/").split("/")
    match parts:
        case [""]:
            return Answer(200, {"paths": _paths(state)})
        case ["version"]:
            return _plain(state, documents["version"], accept)
        case ["api" | "apis"] if _wants_aggregated(state, accept):
            return _aggregated(state, core=parts == ["api"])
        case ["api"]:
            return _plain(state, _versions(address), accept)
        case ["apis"]:
            return _plain(state, {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(state)}, accept)
        case ["api", version]:
            return _resource_list(state, version, accept)
        case ["apis", group]:
            found = [one for one in _groups(state) if one["name"] == group]
            return _plain(state, {"kind": "APIGroup", "apiVersion": "v1", **found[0]}, accept) if found else None
        case ["apis", group, version] if state.catalogue.group_versions(group):
            return _resource_list(state, f"{group}/{version}", accept)
        case _:
            return None


def _plain(state: State, document: Json, accept: str | None) -> Answer:
    if any(clause.media_type in {"application/json", "application/yaml", "*/*"} for clause in clauses(accept or "*/*")):
        if not any(clause.parameters.get("as") is None for clause in clauses(accept or "*/*")):
            raise unacceptable()
    else:
        negotiate(accept, state.version)
    return Answer(200, document)


def _versions(address: str) -> Json:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _groups(state: State) -> list[Json]:
    return [
        {
            "name": row["name"],
            "versions": [_group_version(row["name"], version) for version in row["versions"]],
            "preferredVersion": _group_version(row["name"], row["preferred"]),
        }
        for row in state.catalogue.documents["groups"]
    ]


def _group_version(group: str, version: str) -> Json:
    return {"groupVersion": f"{group}/{version}", "version": version}


def _resource_list(state: State, group_version: str, accept: str | None) -> Answer:
    rows = state.catalogue.documents["resources"].get(group_version)
    if rows is None:
        raise not_served()
    kind: Json = {"kind": "APIResourceList"}
    if group_version != "v1":
        kind["apiVersion"] = "v1"
    return _plain(state, {**kind, "groupVersion": group_version, "resources": rows}, accept)


def not_served() -> ApiStatusError:
    return ApiStatusError(failure(404, "NotFound", "the server could not find the requested resource", {}))


def _nothing_here(state: State, path: str) -> Answer:
    if state.version.plain_404 or path.startswith(("/apis/", "/api/")):
        return Answer(404, b"404 page not found\n", TEXT, [NOSNIFF])
    return Answer(404, {"paths": state.catalogue.documents["paths"]})


def _paths(state: State) -> list[str]:
    documents = state.catalogue.documents
    groups = [f"/apis/{row['name']}" for row in documents["groups"]]
    versions = [f"/apis/{name}" for name in documents["resources"] if "/" in name]
    rest = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/readyz", "/version"]
    return sorted([*groups, *versions, *rest])


# --- the aggregated form ---------------------------------------------------------------------------------------------

_GROUP: Final = "apidiscovery.k8s.io"


def _wants_aggregated(state: State, accept: str | None) -> bool:
    return state.version.aggregated_discovery and any(_is_aggregated(clause) for clause in clauses(accept or ""))


def _is_aggregated(clause: Clause) -> bool:
    wanted = {"g": _GROUP, "v": "v2", "as": "APIGroupDiscoveryList"}
    return clause.media_type == "application/json" and clause.parameters == wanted


def _aggregated(state: State, *, core: bool) -> Answer:
    documents = state.catalogue.documents
    groups = [{"name": "", "versions": ["v1"]}] if core else documents["groups"]
    body = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{_GROUP}/v2",
        "metadata": {},
        "items": [_discovered_group(row, state.catalogue) for row in groups],
    }
    return Answer(200, body, f"application/json;g={_GROUP};v=v2;as=APIGroupDiscoveryList", [("Vary", "Accept")])


def _discovered_group(row: Json, catalogue: Catalogue) -> Json:
    name = row["name"]
    versions = [
        {
            "version": version,
            "resources": _discovered(catalogue.documents["resources"][f"{name}/{version}" if name else version]),
            "freshness": "Current",
        }
        for version in row["versions"]
    ]
    return {"metadata": {"name": name} if name else {}, "versions": versions}


def _discovered(rows: list[Json]) -> list[Json]:
    found: list[Json] = []
    for row in rows:
        plural, _, subresource = row["name"].partition("/")
        kind = {"group": row.get("group", ""), "version": row.get("version", ""), "kind": row["kind"]}
        if subresource:
            below = {"subresource": subresource, "responseKind": kind, "verbs": row["verbs"]}
            found[-1].setdefault("subresources", []).append(below)
            continue
        entry = {
            "resource": plural,
            "responseKind": kind,
            "scope": "Namespaced" if row["namespaced"] else "Cluster",
            "singularResource": row["singularName"],
            "verbs": row["verbs"],
        }
        found.append(entry | {name: row[name] for name in ("shortNames", "categories") if name in row})
    return found


# --- health and OpenAPI ----------------------------------------------------------------------------------------------


def _health(state: State, target: Target, path: str) -> Answer:
    if target.method != "GET":
        raise method_not_allowed()
    kind, _, check = path.strip("/").partition("/")
    if check:
        return Answer(200, b"ok", TEXT)
    if "verbose" not in target.query:
        return Answer(200, b"ok", TEXT, [NOSNIFF])
    lines = state.catalogue.documents["readyz"]
    named = "healthz" if lines[-1].startswith("healthz") else kind
    text = "\n".join([*lines[:-1], f"{named} check passed", ""])
    return Answer(200, text.encode(), TEXT, [NOSNIFF])


OPENAPI_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
OPENAPI_VARY: Final = [("Vary", "Accept-Encoding"), ("Vary", "Accept")]


def _openapi(state: State, path: str, accept: str | None) -> Answer:
    """Documents that name no schema: clients then check nothing by themselves."""
    if path == "/openapi/v2":
        if accept is not None and "protobuf" in accept:
            content_type = OPENAPI_PROTOBUF if state.version.openapi_v3 else "application/octet-stream"
            return Answer(200, EMPTY_OPENAPI, content_type, list(OPENAPI_VARY))
        version = state.catalogue.documents["version"]["gitVersion"]
        body: Json = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": version}, "paths": {}}
        return Answer(200, body, "" if state.version.openapi_v3 else TEXT, list(OPENAPI_VARY))
    if path == "/openapi/v3" and state.version.openapi_v3:
        return Answer(200, b'{"paths":{}}', TEXT)
    raise not_served()


EMPTY_OPENAPI: Final = b"\x0a\x032.0\x12\x17\x0a\x0aKubernetes\x12\x09unversion"
"""openapi.v2.Document: swagger "2.0", an info, no paths and no definitions."""
