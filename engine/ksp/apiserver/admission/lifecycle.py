"""Admission that looks at every kind: whether the namespace is there, and is not being deleted (NamespaceLifecycle)."""

from typing import Final

from ksp.apiserver.status import ApiStatusError, forbidden, not_found
from ksp.apiserver.strategy import Context, Json

IMMORTAL_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})


def admit_create(obj: Json, context: Context) -> None:
    """Nothing is created in a namespace that is not there (404) or is being deleted (403)."""
    if not context.resource.namespaced or context.loading:
        return
    namespace = context.objects.get("namespaces", "", context.namespace)
    if namespace is None:
        raise not_found("", "namespaces", context.namespace)
    if namespace.get("status", {}).get("phase") == "Terminating":
        raise _terminating(obj, context)


def _terminating(obj: Json, context: Context) -> ApiStatusError:
    resource, name = context.resource, context.namespace
    why = f"unable to create new content in namespace {name} because it is being terminated"
    error = forbidden(resource.group, resource.plural, obj["metadata"].get("name", ""), why)
    error.status["details"]["causes"] = [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    return error


def admit_delete(obj: Json, context: Context) -> None:
    """The namespaces that the system needs stay."""
    if context.resource.id == "namespaces" and obj["metadata"]["name"] in IMMORTAL_NAMESPACES:
        raise forbidden("", "namespaces", obj["metadata"]["name"], "this namespace may not be deleted")
