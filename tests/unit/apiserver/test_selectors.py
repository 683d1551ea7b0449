from __future__ import annotations

from typing import Any

import pytest

from ksp.apiserver.handlers.selectors import field_selector, label_selector
from ksp.apiserver.resources import catalogue
from ksp.apiserver.status import ApiStatusError
from ksp.apiserver.versions import V1_19, V1_36

RESOURCES = catalogue("1.36").by_path
PODS = RESOURCES["", "v1", "pods"]
CONFIG_MAPS = RESOURCES["", "v1", "configmaps"]


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "x", "labels": labels}}


@pytest.mark.parametrize(
    ("selector", "labels", "fits"),
    [
        ("a=1", {"a": "1"}, True),
        ("a==1", {"a": "2"}, False),
        ("a!=1", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": "1"}, False),
        ("! a", {}, True),
        ("a in (1, 2)", {"a": "2"}, True),
        ("a in (1,)", {"a": ""}, True),
        ("a notin (1)", {}, True),
        ("a=", {"a": ""}, True),
        ("a=1,b!=2,c", {"a": "1", "c": "x"}, True),
        ("a=1,b", {"a": "1"}, False),
        ("n>3", {"n": "10"}, True),
        ("n<3", {"n": "10"}, False),
        ("n>3", {"n": "x"}, False),
        ("example.com/a in (x)", {"example.com/a": "x"}, True),
    ],
)
def test_label_selectors(selector: str, labels: dict[str, str], fits: bool) -> None:
    predicate = label_selector(selector, V1_36)
    assert predicate is not None
    assert predicate(labelled(**labels)) is fits


def test_no_labels_at_all_are_none() -> None:
    predicate = label_selector("!a", V1_36)
    assert predicate is not None
    assert predicate({"metadata": {"name": "x", "labels": None}})


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_selector_is_no_selector(text: str) -> None:
    assert label_selector(text, V1_36) is None


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("a in 1", "unable to parse requirement: found '1' expected: '('"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: '=', '!=', '==', 'in', notin'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a in (1", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (!)", "unable to parse requirement: found '!', expected: ',', ')' or identifier"),
    ],
)
def test_malformed_label_selectors(selector: str, message: str) -> None:
    with pytest.raises(ApiStatusError) as error:
        label_selector(selector, V1_19)
    assert error.value.code == 400
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ("spec.nodeName=", True),
        ("spec.nodeName!=", False),
        ("status.phase=Pending", True),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("metadata.name=p", True),
        ("spec.hostNetwork=false", True),
        ("metadata.namespace==other", False),
    ],
)
def test_field_selectors(selector: str, fits: bool) -> None:
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {}, "status": {"phase": "Pending"}}
    predicate = field_selector(selector, PODS)
    assert predicate is not None
    assert predicate(pod) is fits


def test_a_comma_can_be_escaped() -> None:
    predicate = field_selector(r"metadata.name=a\,b", CONFIG_MAPS)
    assert predicate is not None
    assert predicate({"metadata": {"name": "a,b"}})


@pytest.mark.parametrize(
    ("resource", "selector", "message"),
    [
        (PODS, "spec.priority=1", "field label not supported: spec.priority"),
        (CONFIG_MAPS, "data.a=1", '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        (PODS, "spec.nodeName", "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'"),
    ],
)
def test_refused_field_selectors(resource: Any, selector: str, message: str) -> None:
    with pytest.raises(ApiStatusError) as error:
        field_selector(selector, resource)
    assert error.value.code == 400
    assert str(error.value) == message
