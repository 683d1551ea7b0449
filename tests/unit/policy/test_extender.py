"""What an extender's settings say of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.scheduling import pod

from ksp.policy.extender import Extender, ExtenderTLS

GPU = "example.com/gpu"
MANAGES = Extender("http://x", managed_resources=frozenset({GPU, "example.com/other"}))


@pytest.mark.parametrize("where", ["containers", "initContainers"])
@pytest.mark.parametrize("how", ["requests", "limits"])
def test_a_pod_is_its_business_that_asks_for_what_it_manages(where: str, how: str) -> None:
    plain: Any = {"name": "plain", "resources": {"requests": {"cpu": "1"}}}
    asks: Any = {"name": "asks", "resources": {how: {"cpu": "1", GPU: "0"}}}
    fields: dict[str, Any] = {where: [plain, asks]}
    assert MANAGES.is_interested(pod("p", **fields).spec)
    fields[where] = [plain]
    assert not MANAGES.is_interested(pod("p", **fields).spec)
    assert Extender("http://x").is_interested(pod("p").spec)


@pytest.mark.parametrize(
    ("prefix", "name"),
    [
        ("http://10.0.0.1:8888/a", "http://10.0.0.1:8888/a"),
        ("https://user:secret@host:1/a@b", "https://host:1/a@b"),
        ("http://user@host", "http://host"),
        ("user:secret@host/a", "host/a"),
        ("http://us@er:secret@host?x", "http://host?x"),
        ("http://host/a@b", "http://host/a@b"),
        ("", ""),
    ],
)
def test_it_is_named_without_a_password(prefix: str, name: str) -> None:
    assert Extender(prefix).name == name


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(Extender("http://x", tls=ExtenderTLS(key_data=b"secret")))
