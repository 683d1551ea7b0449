"""Kubeconfigs for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def document(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, name: str = "c"
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://k.example:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "abc"} if user is None else user}],
    }


def written(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path
