"""What a refusal of a change says of the object: is it still the one that was meant?"""

from __future__ import annotations

from ksp.kube.errors import ApiError


def is_gone(error: ApiError) -> bool:
    """There is no object of that name. (A path that is not served is a 404 too, of another reason.)"""
    return error.status == 404 and error.reason == "NotFound"


def names_another(error: ApiError) -> bool:
    """The name stands for another object by now: the uid that went along in a patch is not that of the one there."""
    causes = error.details.get("causes")
    return (
        error.status == 422
        and isinstance(causes, list)
        and any(isinstance(cause, dict) and cause.get("field") == "metadata.uid" for cause in causes)
    )
