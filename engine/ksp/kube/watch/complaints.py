"""Failures as sentences for those who run the scheduler: what did not work, and what to do about it."""

from __future__ import annotations

from ksp.kube.errors import ApiError, KubeError
from ksp.kube.printable import printable
from ksp.kube.watch.resources import Resource

# Bytes of a server's own words.
_QUOTED = 400


def explain(resource: Resource, verb: str, error: KubeError) -> str:
    """Why the scheduler could not `verb` (list, watch) the resource."""
    what = f"cannot {verb} {resource.plural} {resource.scope}"
    match error:
        case ApiError(status=403):
            return f"{what}: add to the {resource.role}: {resource.rule} ({_words(error)})"
        case ApiError(status=401):
            return (
                f"{what}: the API server does not accept the credentials: check the token, certificate or exec plugin "
                f"of the kubeconfig ({_words(error)})"
            )
        case ApiError(status=429):
            return f"{what}: the API server is busy and wants to be asked later ({_words(error)})"
        case _:
            return f"{what}: {printable(str(error), _QUOTED)}"


def _words(error: ApiError) -> str:
    return f"the server says: {error.status} {printable(error.message or error.reason, _QUOTED)}"
