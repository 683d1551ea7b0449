"""What to say when the API server refuses a write.

A 403 has many causes: rights, a namespace that is being deleted, a quota, a webhook. Only the authorizer's says
`User "…" cannot create resource "pods/binding" in API group ""`, the same in all versions; it names the rule to add.
"""

from __future__ import annotations

import re
from typing import Final

from ksp.kube.errors import ApiError

_DENIED: Final = re.compile(
    r'cannot (?P<verb>[a-z]+) resource "(?P<resource>[a-z0-9./-]+)" in API group "(?P<group>[a-z0-9.-]*)"'
)


def explained(error: ApiError) -> str:
    """The server's words, with the status, and the rule that a ClusterRole lacks where that is the cause."""
    denied = _DENIED.search(error.message) if error.status == 403 else None
    if denied is None:
        return str(error)
    group, resource, verb = denied["group"], denied["resource"], denied["verb"]
    rule = f'apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]'
    return f"{error}; add to the ClusterRole: {rule}"
