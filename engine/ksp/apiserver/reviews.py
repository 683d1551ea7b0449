"""TokenReview and the access reviews: answered from the server's own tokens and roles, never stored."""

from typing import Any, Final

from ksp.apiserver import bodies
from ksp.apiserver.access import AUTHENTICATED, Access, Attributes
from ksp.apiserver.resources import Resource
from ksp.apiserver.state import Answer, Call
from ksp.apiserver.status import bad_request, invalid, invalid_value
from ksp.apiserver.strategy import User

Json = dict[str, Any]

KINDS: Final = frozenset(
    {"TokenReview", "SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectReview"}
)


def serves(resource: Resource) -> bool:
    return resource.kind in KINDS


def review(call: Call, access: Access) -> Answer:
    obj = bodies.read(call, call.resource)
    if call.state.version.null_creation_timestamps:
        obj["metadata"].setdefault("creationTimestamp", None)
    match call.resource.kind:
        case "TokenReview":
            obj["status"] = _token(obj.get("spec") or {}, access)
        case "SelfSubjectReview":
            obj["status"] = {"userInfo": user_info(call.user)}
        case "SelfSubjectAccessReview":
            obj["status"] = _decision(obj.get("spec") or {}, call.user, access)
        case _:
            obj["status"] = _decision(obj.get("spec") or {}, _user(obj.get("spec") or {}, call), access)
    return Answer(201, obj)


def user_info(user: User) -> Json:
    found: Json = {"username": user.name}
    if user.uid:
        found["uid"] = user.uid
    if user.groups:
        found["groups"] = list(user.groups)
    return found


def _token(spec: Json, access: Access) -> Json:
    token = spec.get("token", "")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    user = access.tokens.get(token)
    audiences = [one for one in spec.get("audiences") or [AUDIENCE] if one == AUDIENCE]
    if user is None or not audiences:
        return {"user": {}, "error": "invalid bearer token"}
    groups = list(dict.fromkeys([*user.groups, AUTHENTICATED]))
    return {"authenticated": True, "user": {**user_info(user), "groups": groups}, "audiences": audiences}


AUDIENCE: Final = "https://kubernetes.default.svc"
"""Of the server itself."""


def _user(spec: Json, call: Call) -> User:
    causes = []
    if not spec.get("resourceAttributes") and not spec.get("nonResourceAttributes"):
        causes.append(
            invalid_value(
                "spec.resourceAttributes",
                "null" if call.state.version.json_values else '"null"',
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            )
        )
    if not spec.get("user") and not spec.get("groups"):
        causes.append(invalid_value("spec.user", '""', "at least one of user or group must be specified"))
    if causes:
        raise invalid("authorization.k8s.io", "", "", causes)
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()))


def _decision(spec: Json, user: User, access: Access) -> Json:
    reason = access.allows(user, asked(spec))
    if reason is None:
        return {"allowed": False}
    return {"allowed": True, "reason": reason} if reason else {"allowed": True}


def asked(spec: Json) -> Attributes:
    if spec.get("nonResourceAttributes"):
        row = spec["nonResourceAttributes"]
        return Attributes(row.get("verb", ""), path=row.get("path", ""))
    row = spec.get("resourceAttributes") or {}
    return Attributes(
        verb=row.get("verb", ""),
        group=row.get("group", ""),
        plural=row.get("resource", ""),
        subresource=row.get("subresource", ""),
        namespace=row.get("namespace", ""),
        name=row.get("name", ""),
    )
