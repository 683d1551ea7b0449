"""JSON merge patches (RFC 7386)."""

from typing import Any

Json = dict[str, Any]


def apply(original: Any, patch: Any) -> Any:
    """What `patch` makes of `original`, which stays as it is: null removes, objects are joined, the rest replaces."""
    if not isinstance(patch, dict):
        return patch
    out: Json = dict(original) if isinstance(original, dict) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = apply(out.get(name), value)
    return out
