"""How Go writes values into its messages."""

from __future__ import annotations

import json
from collections.abc import Iterable


def quoted(text: str) -> str:
    """As %q."""
    return json.dumps(text, ensure_ascii=False)


def listed(texts: Iterable[str]) -> str:
    """As %v of a list of strings."""
    return f"[{' '.join(texts)}]"
