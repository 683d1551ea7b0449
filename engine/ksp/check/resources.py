"""Which names a resource can have.

Names without a domain are Kubernetes' own (pkg/apis/core/helper, IsStandardResourceName and IsNativeResource); others
are called after who defines them, as `nvidia.com/gpu`.
"""

from __future__ import annotations

from ksp.check import mistakes
from ksp.check.report import Report, nearest
from ksp.check.typed import Constant, Expr
from ksp.check.types import ANY_INT, Int, resource_dimension
from ksp.source.text import Span

OWN = ("cpu", "memory", "ephemeral-storage", "pods", "storage")
FAMILIES = ("hugepages-", "attachable-volumes-")
MEANT = (*OWN, "hugepages-2Mi", "hugepages-1Gi", "attachable-volumes-aws-ebs", "attachable-volumes-gce-pd")
"""What a misspelt name is compared with."""

# What people call a resource that has a longer name.
SHORT = {"gpu": "nvidia.com/gpu", "gpus": "nvidia.com/gpu", "mem": "memory", "disk": "ephemeral-storage"}


def is_resource(name: str) -> bool:
    """There can be a resource of this name."""
    if "/" in name:
        domain, _, rest = name.partition("/")
        return bool(domain and rest) and "/" not in rest
    return name in OWN or any(name.startswith(family) and name != family for family in FAMILIES)


def meant(name: str) -> str:
    """The resource that was most likely meant, "" if none is near."""
    return SHORT.get(name.lower()) or nearest(name, MEANT) or ""


def constant_name(key: Expr) -> str | None:
    """The name of a resource, where it is known when the policy is checked."""
    return key.value if isinstance(key, Constant) and isinstance(key.value, str) else None


def check_name(report: Report, span: Span, name: str | None, *, as_field: bool = False) -> Int:
    """The type of the amounts of a resource. Reports a name that no resource can have; None is one that is not known
    yet. The amounts of both fit any dimension."""
    if name is None:
        return ANY_INT
    if not is_resource(name):
        mistakes.unknown_resource(report, span, name, meant(name), as_field=as_field)
        return ANY_INT
    return Int(resource_dimension(name))
