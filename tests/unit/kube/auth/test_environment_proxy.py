from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.kube.kubeconfigs import document, written

from ksp.kube.auth.config import load_cluster
from ksp.kube.auth.environment_proxy import proxy_for
from ksp.kube.errors import ConfigError

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://k.example", {}, None),
        ("https://k.example", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://k.example", {"https_proxy": "proxy:3128"}, PROXY),
        ("https://k.example", {"HTTP_PROXY": PROXY}, None),
        ("http://k.example", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.0.0.2:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
    ],
)
def test_which_variable(server: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(server, environ) == proxy


@pytest.mark.parametrize(
    ("host", "rules", "direct"),
    [
        ("k.example", "*", True),
        ("k.example", "a, k.example", True),
        ("k.example", "K.Example", True),
        ("k.example", "example", True),
        ("k.example", ".example", True),
        ("k.example", "*.example", True),
        ("example", ".example", False),
        ("k.example", "ample", False),
        ("k.example", "k.example:6443", True),
        ("k.example", "k.example:443", False),
        ("k.example", ",", False),
        ("10.96.0.1", "10.0.0.0/8", True),
        ("10.96.0.1", "10.96.0.1", True),
        ("10.96.0.1", "10.96.0.1:6443", True),
        ("10.96.0.1", "10.96.0.1:443", False),
        ("10.96.0.1", "192.168.0.0/16,172.16.0.0/12", False),
        ("[fd00::1]", "fd00::/8", True),
        ("[fd00::1]", "fd00::1", True),
        ("[fd00::1]", "[fd00::1]:6443", True),
        ("[fd00::1]", "fe80::/10", False),
    ],
)
def test_exceptions(host: str, rules: str, direct: bool) -> None:
    environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": rules}
    assert proxy_for(f"https://{host}:6443", environ) == (None if direct else PROXY)


def test_a_proxy_of_another_kind() -> None:
    for proxy in ("socks5://me:s3cr3t@x", "http://me:s3cr3t@x:99999", "http://"):
        with pytest.raises(ConfigError, match=r"^\$HTTPS_PROXY is no address like http://proxy:3128") as caught:
            proxy_for("https://k.example", {"HTTPS_PROXY": proxy})
        assert "s3cr3t" not in str(caught.value)


def test_a_kubeconfig_goes_before_the_environment(tmp_path: Path) -> None:
    with_proxy = written(tmp_path / "a", document({"proxy-url": "http://own:1"}))
    without = written(tmp_path / "b", document())
    environ = {"HTTPS_PROXY": PROXY}
    assert load_cluster(str(with_proxy), None, environ).proxy == "http://own:1"
    assert load_cluster(str(without), None, environ).proxy == PROXY
