"""Request paths that names from a cluster cannot leave."""

from __future__ import annotations

import re
from urllib.parse import quote

_SAFE = re.compile(r"(?:/[A-Za-z0-9\-_~!$&'()*+,;=:@.%]+)+/?|/")
_DOTS = frozenset({".", ".."})


def path_of(*segments: str) -> str:
    """`/a/b/c` of the segments `a`, `b`, `c`, each quoted; a slash, a question mark, a percent sign lose their meaning.

    ValueError where a segment is empty, `.` or `..`: no object of Kubernetes can have such a name.
    """
    for segment in segments:
        if not segment or segment in _DOTS:
            raise ValueError(f"{segment!r} cannot be a part of a path")
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def checked(path: str) -> str:
    """`path`, if it is a quoted absolute path without `.` and `..`; ValueError otherwise, as the caller has a bug."""
    if not _SAFE.fullmatch(path) or ("/." in path and not _DOTS.isdisjoint(path.split("/"))):
        raise ValueError(f"{path!r} is not a quoted path; names are put into it by path_of")
    return path
