"""TokenReview and the access reviews: answered from the server's own tokens and roles, never stored."""

from typing import Any, Final

import msgspec

from ksp.apiserver.access import AUTHENTICATED, Access, Attributes
from ksp.apiserver.http import bodies
from ksp.apiserver.resources import Resource
from ksp.apiserver.state import Answer, Call
from ksp.apiserver.status import bad_request, invalid, invalid_value
from ksp.apiserver.strategy import User

Json = dict[str, Any]

KINDS: Final = frozenset(
    {"TokenReview", "SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectReview"}
)


class ResourceAttributes(msgspec.Struct, frozen=True):
    """What somebody wants to do with a resource."""

    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class NonResourceAttributes(msgspec.Struct, frozen=True):
    """What somebody wants to do with a path."""

    verb: str = ""
    path: str = ""


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    """What the reviews ask, all in one."""

    token: str | None = None
    audiences: tuple[str, ...] | None = None
    user: str | None = None
    groups: tuple[str, ...] | None = None
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


def serves(resource: Resource) -> bool:
    return resource.kind in KINDS


def review(call: Call, access: Access) -> Answer:
    obj = bodies.read(call, call.resource)
    spec = _spec(obj, call)
    if call.state.version.null_creation_timestamps:
        obj["metadata"].setdefault("creationTimestamp", None)
    match call.resource.kind:
        case "TokenReview":
            obj["status"] = _token(spec, access)
        case "SelfSubjectReview":
            obj["status"] = {"userInfo": user_info(call.user)}
        case "SelfSubjectAccessReview":
            obj["status"] = _decision(spec, call.user, access)
        case _:
            obj["status"] = _decision(spec, _user(spec, call), access)
    return Answer(201, obj)


def _spec(obj: Json, call: Call) -> Spec:
    """Raises 400."""
    try:
        return msgspec.convert(obj.get("spec") or {}, Spec)
    except msgspec.ValidationError as error:
        kind = call.resource.kind
        where = f'{kind} in version "{call.resource.version}" cannot be handled as a {kind}: '
        raise bad_request(f"{where}{error}") from None


def user_info(user: User) -> Json:
    found: Json = {"username": user.name}
    if user.uid:
        found["uid"] = user.uid
    if user.groups:
        found["groups"] = list(user.groups)
    return found


def _token(spec: Spec, access: Access) -> Json:
    if not spec.token:
        raise bad_request("token is required for TokenReview in authentication")
    user = access.tokens.get(spec.token)
    audiences = [one for one in spec.audiences or [AUDIENCE] if one == AUDIENCE]
    if user is None or not audiences:
        return {"user": {}, "error": "invalid bearer token"}
    groups = list(dict.fromkeys([*user.groups, AUTHENTICATED]))
    return {"authenticated": True, "user": {**user_info(user), "groups": groups}, "audiences": audiences}


AUDIENCE: Final = "https://kubernetes.default.svc"
"""Of the server itself."""


def _user(spec: Spec, call: Call) -> User:
    causes = []
    if spec.resource_attributes is None and spec.non_resource_attributes is None:
        causes.append(
            invalid_value(
                "spec.resourceAttributes",
                "null" if call.state.version.json_values else '"null"',
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            )
        )
    if not spec.user and not spec.groups:
        causes.append(invalid_value("spec.user", '""', "at least one of user or group must be specified"))
    if causes:
        raise invalid("authorization.k8s.io", "", "", causes)
    return User(spec.user or "", spec.groups or ())


def _decision(spec: Spec, user: User, access: Access) -> Json:
    reason = access.allows(user, asked(spec))
    if reason is None:
        return {"allowed": False}
    return {"allowed": True, "reason": reason} if reason else {"allowed": True}


def asked(spec: Spec) -> Attributes:
    path, row = spec.non_resource_attributes, spec.resource_attributes or ResourceAttributes()
    if path is not None:
        return Attributes(path.verb, path=path.path)
    return Attributes(row.verb, row.group, row.resource, row.subresource, row.namespace, row.name)
