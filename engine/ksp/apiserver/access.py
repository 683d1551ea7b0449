"""Who asks, and what they may: static tokens, and a small table of the roles that schedulers and everybody have.

This is not Kubernetes' RBAC: roles in the store are objects like others and grant nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ksp.apiserver.handlers.selectors import name_in
from ksp.apiserver.http.routing import Target
from ksp.apiserver.status import ApiStatusError, failure, unauthorized
from ksp.apiserver.strategy import User

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked, as authorisation sees it."""

    verb: str
    group: str = ""
    plural: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """Of what is no resource."""

    @property
    def resource(self) -> str:
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


@dataclass(frozen=True, slots=True)
class Rule:
    """What a role allows; `names` empty means all, `namespace` empty means everywhere."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str] = frozenset()
    namespace: str = ""
    role: str = ""
    """As the reason of a review names it."""

    def allows(self, asked: Attributes) -> bool:
        return (
            asked.verb in self.verbs
            and asked.group in self.groups
            and asked.resource in self.resources
            and (not self.names or asked.name in self.names)
            and (not self.namespace or asked.namespace == self.namespace)
        )


_SCHEDULER: Final = "system:kube-scheduler"


def rule(groups: str, resources: str, verbs: str, names: str = "", namespace: str = "", role: str = _SCHEDULER) -> Rule:
    """Words split by spaces; the core group is `core`."""
    return Rule(
        verbs=frozenset(verbs.split()),
        groups=frozenset("" if group == "core" else group for group in groups.split()),
        resources=frozenset(resources.split()),
        names=frozenset(names.split()),
        namespace=namespace,
        role=role,
    )


_READ: Final = "get list watch"
SCHEDULER: Final = (
    rule("core events.k8s.io", "events", "create patch update"),
    rule("coordination.k8s.io", "leases", "create"),
    rule("coordination.k8s.io", "leases", "get update", "kube-scheduler"),
    rule("core", "endpoints", "create"),
    rule("core", "endpoints", "get update", "kube-scheduler"),
    rule("core", "nodes", _READ),
    rule("core", "pods", f"{_READ} delete"),
    rule("core", "bindings pods/binding", "create"),
    rule("core", "pods/status", "patch update"),
    rule("core", "services replicationcontrollers persistentvolumeclaims persistentvolumes", _READ),
    rule("apps extensions", "replicasets", _READ),
    rule("apps", "statefulsets", _READ),
    rule("policy", "poddisruptionbudgets", _READ),
    rule("storage.k8s.io", "csinodes csidrivers csistoragecapacities", _READ),
    rule("authentication.k8s.io", "tokenreviews", "create"),
    rule("authorization.k8s.io", "subjectaccessreviews", "create"),
    # system:volume-scheduler
    rule("core", "persistentvolumes persistentvolumeclaims", f"{_READ} patch update", role="system:volume-scheduler"),
    rule("storage.k8s.io", "storageclasses", _READ, role="system:volume-scheduler"),
    # in kube-system: leader election by a configmap
    rule("core", "configmaps", "create", namespace="kube-system"),
    rule("core", "configmaps", "get update", "kube-scheduler", "kube-system"),
    # whose client certificates and which proxies count
    rule(
        "core",
        "configmaps",
        _READ,
        "extension-apiserver-authentication",
        "kube-system",
        "extension-apiserver-authentication-reader",
    ),
)
"""Roles bound to the user system:kube-scheduler, of 1.19."""

NEWER_SCHEDULER: Final = (
    rule("core", "namespaces", _READ),
    rule("storage.k8s.io", "volumeattachments", _READ),
    rule("resource.k8s.io", "deviceclasses resourceslices", _READ),
    rule("resource.k8s.io", "resourceclaims", f"{_READ} update patch"),
    rule("resource.k8s.io", "resourceclaims/status", "update patch"),
    rule("core", "pods/finalizers", "update"),
    rule("coordination.k8s.io", "leases", "get list watch update", namespace="kube-system"),
)
"""What 1.36 adds. Leases in kube-system: as recorded."""

EVERYBODY: Final = (
    rule(
        "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create", role="system:basic-user"
    ),
    rule("authentication.k8s.io", "selfsubjectreviews", "create", role="system:basic-user"),
)
_OPEN_PATHS: Final = ("/api", "/apis", "/openapi", "/version")
_OPEN_CHECKS: Final = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})


@dataclass(slots=True)
class Access:
    """Tokens and what their users may."""

    tokens: dict[str, User] = field(default_factory=dict)
    anonymous_is_admin: bool = True
    """Whether a request without credentials may do everything; else it is refused with 401."""
    newer: bool = True
    """The roles of 1.36."""

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """Raises 401."""
        header = headers.get("Authorization", "")
        scheme, _, token = header.partition(" ")
        if scheme.lower() == "bearer" and token.strip() in self.tokens:
            return self.tokens[token.strip()]
        if header or not self.anonymous_is_admin:
            raise unauthorized()
        return User("system:admin", (MASTERS, AUTHENTICATED))

    def allows(self, user: User, asked: Attributes) -> str | None:
        """Why it is allowed (nothing to say of administrators); None if it is not."""
        if MASTERS in user.groups:
            return ""
        authenticated = AUTHENTICATED in user.groups
        if asked.path:
            opens = authenticated and asked.verb == "get" and _is_open(asked.path)
            return _reason("system:discovery", f'Group "{AUTHENTICATED}"') if opens else None
        if authenticated:
            for one in EVERYBODY:
                if one.allows(asked):
                    return _reason(one.role, f'Group "{AUTHENTICATED}"')
        if user.name == _SCHEDULER:
            for one in (*SCHEDULER, *(NEWER_SCHEDULER if self.newer else ())):
                if one.allows(asked):
                    return _reason(one.role, f'User "{_SCHEDULER}"')
        return None

    def check(self, user: User, target: Target) -> None:
        """Raises 403."""
        asked = attributes(target)
        if self.allows(user, asked) is None:
            raise ApiStatusError(denied(user, asked))


def _reason(role: str, subject: str) -> str:
    return f'RBAC: allowed by ClusterRoleBinding "{role}" of ClusterRole "{role}" to {subject}'


def _is_open(path: str) -> bool:
    return path in _OPEN_CHECKS or any(path == one or path.startswith(one + "/") for one in _OPEN_PATHS)


def attributes(target: Target) -> Attributes:
    if not target.is_resource:
        return Attributes(target.verb, path=target.path)
    return Attributes(
        verb=target.verb,
        group=target.group,
        plural=target.plural,
        subresource=target.subresource,
        namespace=target.namespace,
        name=target.name or _listed_name(target),
    )


def _listed_name(target: Target) -> str:
    """Who lists or watches one object, by `metadata.name=NAME`, may do so with the right to that one."""
    if target.verb not in {"list", "watch", "deletecollection"}:
        return ""
    try:
        return name_in(target.query.get("fieldSelector", ""))
    except ApiStatusError:
        return ""  # that it cannot be read is told by who lists


def denied(user: User, asked: Attributes) -> dict[str, object]:
    """The Status of a 403."""
    if asked.path:
        message = f'forbidden: User "{user.name}" cannot {asked.verb} path "{asked.path}"'
        return failure(403, "Forbidden", message, {})
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    qualified = f"{asked.plural}.{asked.group}" if asked.group else asked.plural
    subject = f'{qualified} "{asked.name}"' if asked.name else qualified
    message = (
        f'{subject} is forbidden: User "{user.name}" cannot {asked.verb} resource "{asked.resource}" '
        f'in API group "{asked.group}" {where}'
    )
    details = {"name": asked.name, "group": asked.group, "kind": asked.plural}
    return failure(403, "Forbidden", message, details)
