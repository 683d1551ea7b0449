from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.unit.kube.certificates import Authority
from tests.unit.kube.kubeconfigs import document, written

from ksp.kube.auth.cluster import Cluster, server_url
from ksp.kube.auth.config import cluster_of, load_cluster
from ksp.kube.auth.credentials import Grant, Issued, User
from ksp.kube.auth.tls import KeyPair, Pem, Trust
from ksp.kube.errors import ConfigError
from ksp.kube.http.client import Client

PEM = b"-----BEGIN CERTIFICATE-----\n"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("xyz\n")
    (folder / "ca.crt").write_bytes(Authority().pem)
    return folder


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

# --- where from ------------------------------------------------------------------------------------------------------


def test_the_flag(tmp_path: Path, pod: Path) -> None:
    path = written(tmp_path / "config", document())
    cluster = load_cluster(str(path), None, {**IN_POD, "KUBECONFIG": "/elsewhere"}, pod)
    assert cluster == Cluster("https://k.example:6443", f"context c of {path}", user=User("Bearer abc"))


def test_master_takes_the_place_of_the_server(tmp_path: Path) -> None:
    content = document({"certificate-authority-data": encoded(PEM)})
    del content["clusters"][0]["cluster"]["server"]
    path = written(tmp_path / "config", content)
    cluster = load_cluster(str(path), "https://10.1.1.1:443/", {})
    assert cluster.server == "https://10.1.1.1:443"
    assert cluster.origin == f"context c of {path}, server of --master"
    assert cluster.trust.authority is not None
    assert cluster.user == User("Bearer abc")


def test_master_alone_has_no_credentials(tmp_path: Path, pod: Path) -> None:
    written(tmp_path / ".kube" / "config", document())
    cluster = load_cluster("", "127.0.0.1:8080", {**IN_POD, "HOME": str(tmp_path)}, pod)
    assert cluster == Cluster("http://127.0.0.1:8080", "--master")


async def test_the_pod_goes_before_the_environment(tmp_path: Path, pod: Path) -> None:
    written(tmp_path / ".kube" / "config", document())
    cluster = load_cluster(None, None, {**IN_POD, "HOME": str(tmp_path)}, pod)
    assert (cluster.server, cluster.origin) == ("https://10.0.0.1:443", f"the pod's service account ({pod})")
    async with Client(cluster) as client:
        assert (await client._credentials.current()).headers == (("Authorization", "Bearer xyz"),)


def test_a_pod_with_an_ipv6_address(pod: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert load_cluster(None, None, environ, pod).server == "https://[fd00::1]:443"


def test_a_pod_without_token_uses_a_kubeconfig(tmp_path: Path) -> None:
    path = written(tmp_path / ".kube" / "config", document())
    cluster = load_cluster(None, None, {**IN_POD, "HOME": str(tmp_path)}, tmp_path / "nothing")
    assert cluster.origin == f"context c of {path}"


@pytest.mark.parametrize(
    ("damage", "message"),
    [("token", "token.*is empty"), ("ca.crt", "Cert file exists but empty"), ("no ca.crt", "does not exist")],
)
def test_a_damaged_service_account(pod: Path, damage: str, message: str) -> None:
    if damage.startswith("no "):
        (pod / damage.removeprefix("no ")).unlink()
    else:
        (pod / damage).write_text("")
    with pytest.raises(ConfigError, match=rf"{pod}.*{message}"):
        load_cluster(None, None, IN_POD, pod)


def test_a_pod_without_port(pod: Path) -> None:
    with pytest.raises(ConfigError, match="host/port"):
        load_cluster(None, None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, pod)


def test_home(tmp_path: Path) -> None:
    path = written(tmp_path / ".kube" / "config", document())
    assert load_cluster(None, None, {"HOME": str(tmp_path)}).origin == f"context c of {path}"


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first = document(user={"tokenFile": "token"}, name="one")
    first["clusters"] = None
    second = document({"certificate-authority": "ca.crt", "server": "https://two.example"}, {"token": "no"}, name="two")
    names = [
        str(written(tmp_path / "a" / "config", first)),
        str(tmp_path / "missing"),
        str(written(tmp_path / "b" / "config", second)),
    ]
    cluster = load_cluster(None, None, {"KUBECONFIG": ":".join(["", *names])})
    assert cluster.server == "https://two.example"
    assert cluster.origin == f"context one of {names[0]}:{names[2]}"
    assert cluster.user == User(token_file=tmp_path / "a" / "token")
    assert cluster.trust.authority is not None
    assert cluster.trust.authority.source == tmp_path / "b" / "ca.crt"


def test_a_first_file_without_current_context(tmp_path: Path) -> None:
    first, second = document(name="one"), document(name="two")
    first["current-context"] = ""
    names = [str(written(tmp_path / name, content)) for name, content in (("a", first), ("b", second))]
    assert load_cluster(None, None, {"KUBECONFIG": ":".join(names)}).origin.startswith("context two of ")


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"HOME": "/nowhere"}, "there is no /nowhere/.kube/config; give --kubeconfig FILE or --master URL"),
        ({"HOME": "/nowhere", "KUBECONFIG": "/a:/b"}, r"\$KUBECONFIG names no file \(/a, /b\)"),
        ({"HOME": "/nowhere", **IN_POD}, "the pod has no service account token"),
    ],
)
def test_nothing_is_configured(environ: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"no cluster is configured: .*{message}"):
        load_cluster(None, None, environ, tmp_path)


def test_a_flag_that_names_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"--kubeconfig: there is no file {tmp_path}/x"):
        load_cluster(str(tmp_path / "x"), None, {})


def test_a_flag_that_names_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"the kubeconfig \({tmp_path}\) cannot be read: Is a directory"):
        load_cluster(str(tmp_path), None, {})


def test_a_path_that_kubernetes_would_split(tmp_path: Path) -> None:
    path = written(tmp_path / "a:b", document())
    with pytest.raises(ConfigError, match="cannot contain ':'"):
        load_cluster(str(path), None, {})


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "encrypted", "url"),
    [
        ("https://k.example", False, "https://k.example"),
        ("https://k.example:6443/k8s/clusters/c-1/", False, "https://k.example:6443/k8s/clusters/c-1"),
        ("http://[::1]:8080", True, "http://[::1]:8080"),
        ("k.example:6443", True, "https://k.example:6443"),
        ("localhost", False, "http://localhost"),
    ],
)
def test_addresses(text: str, encrypted: bool, url: str) -> None:
    assert server_url(text, "--master", encrypted=encrypted) == url


@pytest.mark.parametrize(
    "text",
    ["", "ftp://k", "https://", "https://k:99999", "https://k:x", "https://k?a", "https://k#a", "https://k k", "ä"],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--master .* is not an address like"):
        server_url(text, "--master", encrypted=False)


@pytest.mark.parametrize("text", ["https://me:secret@k.example", "https://me:secret@k:99999", "me:secret@k?x"])
def test_a_password_in_an_address_is_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="holds a user or a password") as caught:
        server_url(text, "--master", encrypted=False)
    assert "secret" not in str(caught.value)


# --- what a kubeconfig says ------------------------------------------------------------------------------------------


def of(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Cluster:
    return cluster_of(document(cluster, user), "test", Path("/base"))


def test_trust() -> None:
    assert of({"certificate-authority": "pki/ca.crt"}).trust.authority == Pem(
        "/base/kubeconfig: cluster `k`: `certificate-authority`", Path("/base/pki/ca.crt")
    )
    authority = of({"certificate-authority-data": encoded(PEM), "certificate-authority": "x"}).trust.authority
    assert authority is not None
    assert authority.read() == PEM
    assert of({"insecure-skip-tls-verify": True}).trust == Trust(verify=False)
    assert of({"tls-server-name": "api"}).trust == Trust(server_name="api")


def test_the_other_fields_of_a_cluster() -> None:
    cluster = of({"proxy-url": "http://proxy:3128", "disable-compression": True})
    assert (cluster.proxy, cluster.compression) == ("http://proxy:3128", False)
    assert of({"server": "k.example", "insecure-skip-tls-verify": True}).server == "https://k.example"


def test_users() -> None:
    assert of(user={"token": "abc\n"}).user == User("Bearer abc")
    assert of(user={"token": "abc", "tokenFile": "/t"}).user == User("Bearer abc", token_file=Path("/t"))
    assert of(user={"username": "me", "password": "x:y"}).user == User(f"Basic {encoded(b'me:x:y')}")
    assert of(user={"username": "me", "token": "abc"}).user == User("Bearer abc")
    assert of(user={"token": ""}).user == User()
    user = of(user={"client-certificate": "c", "client-key-data": encoded(b"k")}).user
    assert user.certificate is not None
    assert user.key is not None
    assert (user.certificate.source, user.key.source) == (Path("/base/c"), b"k")


def test_a_context_without_user() -> None:
    content = document()
    del content["contexts"][0]["context"]["user"]
    assert cluster_of(content, "test").user == User()


def test_impersonation_is_not_ignored() -> None:
    user = {"token": "a", "as": "me", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"k": ["v", "w"]}}
    assert of(user=user).user.headers == (
        ("Impersonate-User", "me"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-k", "v"),
        ("Impersonate-Extra-k", "w"),
    )


def test_keys_of_impersonation_are_escaped_as_client_go_does_it() -> None:
    user = {"token": "a", "as": "me", "as-user-extra": {"example.com/Ä b": ["v"]}}
    assert of(user=user).user.headers[1] == ("Impersonate-Extra-example.com%2F%C3%84%20b", "v")


def test_secrets_are_not_shown_by_repr() -> None:
    """What is logged or stands in a traceback by mistake tells nothing."""
    for user in (
        {"token": "s3cr3t"},
        {"username": "me", "password": "s3cr3t"},
        {"client-certificate": "c", "client-key-data": encoded(b"s3cr3t")},
        {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1",
                  "env": [{"name": "A", "value": "s3cr3t"}]}},
        {"auth-provider": {"name": "oidc", "config": {"idp-issuer-url": "https://i", "client-id": "i",
                                                      "client-secret": "s3cr3t", "refresh-token": "s3cr3t"}}},
    ):  # fmt: skip
        shown = repr(of({"proxy-url": "http://me:s3cr3t@proxy"}, user))
        assert "s3cr3t" not in shown
        assert encoded(b"me:s3cr3t") not in shown
    for value in (Issued("s3cr3t"), KeyPair(b"", b"s3cr3t", "x"), Grant((("Authorization", "s3cr3t"),), None)):
        assert "s3cr3t" not in repr(value)


def test_a_token_goes_before_a_plugin() -> None:
    plugin = {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}
    assert of(user={"token": "abc", "exec": plugin}).user == User("Bearer abc")


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({"server": None}, None, "cluster `k`: `server` is missing"),
        ({"server": 7}, None, "cluster `k`: `server` has to be text"),
        ({"server": "ftp://x"}, None, "cluster `k`: `server` 'ftp://x' is not an address"),
        ({"certificate-authority-data": "!"}, None, "`certificate-authority-data` is not base64"),
        ({"certificate-authority-data": "ä"}, None, "`certificate-authority-data` is not base64"),
        ({"insecure-skip-tls-verify": "yes"}, None, "`insecure-skip-tls-verify` has to be true or false"),
        ({"insecure-skip-tls-verify": True, "certificate-authority": "x"}, None, "exclude each other"),
        ({"proxy-url": "socks5://me:s3cr3t@x"}, None, "`proxy-url` is no address like http://proxy:3128"),
        ({"proxy-url": "http://me:s3cr3t@x:99999"}, None, "`proxy-url` is no address like http://proxy:3128"),
        (None, {"token": "a", "as": "me\nX: y"}, "`as` holds a line break or another control character"),
        (None, {"token": "a", "as-groups": ["me\r"]}, "`as-groups` holds a line break or another"),
        (None, {"token": "a", "as-user-extra": {"k": ["me\0"]}}, "has to be a list of texts"),
        (None, {"token": "a", "as-user-extra": {"k": ["me\x7f"]}}, "`k` holds a line break or another"),
        (None, {"client-certificate": "x"}, "user `u`: `client-certificate` and `client-key` need each other"),
        (None, {"client-key-data": encoded(b"x")}, "need each other"),
        (None, {"token": 7}, "`token` has to be text; put it into quotes"),
        (None, {"token": "a b"}, "`token` holds a token with blanks"),
        (None, {"tokenFile": "a\0b"}, "`tokenFile` has to be text"),
        (None, {"auth-provider": {"name": "gcp"}}, "auth-provider `gcp` is not supported; use an exec plugin"),
        (None, {"auth-provider": {"name": "oidc"}}, "`config` is missing"),
        (None, {"auth-provider": {"name": "oidc", "config": {}}}, "`idp-issuer-url` is missing"),
    ],
)
def test_mistakes_name_their_place(cluster: dict[str, Any] | None, user: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^/base/kubeconfig: .*{message}") as caught:
        of(cluster, user)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": None}, "no current-context is set; choose one"),
        ({"current-context": "x"}, "there is no context `x`"),
        ({"contexts": None}, "there is no context `c`"),
        ({"clusters": []}, "there is no cluster `k`"),
        ({"users": []}, "there is no user `u`"),
        ({"users": [{"name": "u"}]}, "user `u` is empty"),
        ({"users": [{"name": "u", "user": "x"}]}, "user `u` is empty"),
        ({"contexts": [{"name": "c", "context": {}}]}, "context `c`: `cluster` is missing"),
        ({"clusters": {"k": {}}}, "`clusters` has to be a list"),
        ({"clusters": ["k"]}, "`clusters` has to be a list of entries with a name"),
        ({"users": [{"user": {}}]}, "`users` has to be a list of entries with a name"),
    ],
)
def test_kubeconfigs_of_no_use(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = written(tmp_path / "config", {**document(), **change})
    with pytest.raises(ConfigError, match=f"{path}: {message}"):
        load_cluster(str(path), None, {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not a kubeconfig"),
        ("hello", "is not a kubeconfig"),
        ("- a", "is not a kubeconfig"),
        ("a: [b", ":1:6 is not YAML"),
        ("a: b: c", ":1:5 is not YAML"),
        ("a: !!python/object:os.system {}", "is not YAML"),
        ("\x01", "is not YAML"),
        ("[" * 600 + "]" * 600, "is not YAML: maximum recursion depth exceeded"),
    ],
)
def test_files_that_are_no_kubeconfig(tmp_path: Path, content: str, message: str) -> None:
    path = written(tmp_path / "config", content)
    with pytest.raises(ConfigError, match=f"{path}.*{message}") as caught:
        load_cluster(str(path), None, {})
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match="is not YAML"):
        load_cluster(str(path), None, {})


async def test_certificates_are_tried_when_the_client_is_entered(tmp_path: Path) -> None:
    path = written(tmp_path / "config", document({"certificate-authority": "ca.crt"}))
    cluster = load_cluster(str(path), None, {})
    with pytest.raises(
        ConfigError, match=rf"cluster `k`: `certificate-authority` \({tmp_path}/ca.crt\) cannot be read"
    ):
        async with Client(cluster):
            pass
