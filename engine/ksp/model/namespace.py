"""Namespaces, as far as rules read them: by name and labels."""

from __future__ import annotations

import msgspec

from ksp.model.meta import ObjectMeta


class Namespace(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What other objects are kept apart by."""

    metadata: ObjectMeta = ObjectMeta()
