from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.kube.http.paths import checked, path_of


def test_a_path_of_names() -> None:
    path = path_of("api", "v1", "namespaces", "default", "pods", "web-1.a", "binding")
    assert path == "/api/v1/namespaces/default/pods/web-1.a/binding"
    assert checked(path) == path


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("a/b", "a%2Fb"), ("a?b", "a%3Fb"), ("a#b", "a%23b"), ("%2e%2e", "%252e%252e"), ("a b\r\n", "a%20b%0D%0A")],
)
def test_names_cannot_leave_their_segment(name: str, quoted: str) -> None:
    assert path_of("pods", name) == f"/pods/{quoted}"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_are_no_segment(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a part of a path"):
        path_of("pods", name)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_any_other_name_gives_a_good_path_with_as_many_segments(names: list[str]) -> None:
    names = [name for name in names if name not in {".", ".."}] or ["a"]
    assert checked(path_of(*names)).count("/") == len(names)


@pytest.mark.parametrize("path", ["/", "/version", "/api/", "/apis/events.k8s.io/v1", "/a/...", "/a/.b", "/a/b%2Fc"])
def test_good_paths(path: str) -> None:
    assert checked(path) == path


@pytest.mark.parametrize(
    "path",
    ["", "api", "//evil.example/x", "/a?b=c", "/a#b", "/a b", "/a/../b", "/a/./b", "/..", "/a\r\nX: y", "/ä", "/a//b"],
)
def test_paths_that_are_a_callers_bug(path: str) -> None:
    with pytest.raises(ValueError, match="path_of"):
        checked(path)
