"""What is sent to extenders and read from them, byte by byte."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksp.kube.extenders import wire
from ksp.kube.extenders.wire import (
    FilterResult,
    MalformedAnswerError,
    NodeBodies,
    Removal,
    VictimBodies,
    binding_args,
    extender_args,
    preemption_args,
    read_binding,
    read_filter,
    read_preemption,
    read_priorities,
)

POD = b'{"metadata":{"name":"p","unheard":[1.50,null]}}'


# ---- what is sent


def test_nodes_are_sent_whole_or_by_name() -> None:
    whole = extender_args(POD, NodeBodies(["a", "b"], b'{"x":1.0},{"x":2e3}'))
    assert whole == b'{"Pod":%b,"Nodes":{"metadata":{},"items":[{"x":1.0},{"x":2e3}]},"NodeNames":null}' % POD
    by_name = extender_args(POD, NodeBodies(['a"', "b"]))
    assert by_name == b'{"Pod":%b,"Nodes":null,"NodeNames":["a\\"","b"]}' % POD


def test_victims_are_sent_whole_or_by_uid() -> None:
    victims = {"a": VictimBodies(["1", "2"], 1, [b'{"v":1}', b'{"v":2}']), "b": VictimBodies(["3"], 0, [b'{"v":3}'])}
    whole = json.loads(preemption_args(POD, victims, by_uid=False))
    assert whole["NodeNameToVictims"] == {
        "a": {"Pods": [{"v": 1}, {"v": 2}], "NumPDBViolations": 1},
        "b": {"Pods": [{"v": 3}], "NumPDBViolations": 0},
    }
    assert whole["NodeNameToMetaVictims"] is None
    by_uid = json.loads(preemption_args(POD, victims, by_uid=True))
    assert by_uid["NodeNameToMetaVictims"] == {
        "a": {"Pods": [{"UID": "1"}, {"UID": "2"}], "NumPDBViolations": 1},
        "b": {"Pods": [{"UID": "3"}], "NumPDBViolations": 0},
    }
    assert by_uid["NodeNameToVictims"] is None
    assert by_uid["Pod"] == json.loads(POD)


def test_a_binding_names_pod_and_node() -> None:
    sent = json.loads(binding_args("p", "default", "uid", "n"))
    assert sent == {"PodName": "p", "PodNamespace": "default", "PodUID": "uid", "Node": "n"}


# ---- what is answered


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ('{"NodeNames":["a","b"]}', ["a", "b"]),
        ('{"nodenames":["a"]}', ["a"]),
        ('{"NODENAMES":null,"Nodes":{"items":[{"metadata":{"name":"a"}},{"METADATA":{"Name":"b"}}]}}', ["a", "b"]),
        ('{"nodes":{"kind":"NodeList","items":[]}}', []),
        ('{"Nodes":{"items":[{"spec":{},"metadata":{"uid":"1","name":"a"}},{"metadata":{"name":"b"}}]}}', ["a", "b"]),
        ('{"Nodes":{"Items":[{"metadata":{"name":"a"}},{"metadata":null},null]}}', ["a", "", ""]),
        ('{"Nodes":{"items":null}}', []),
        ('{"Nodes":null}', []),
        ("{}", []),
        ("null", []),
        ('{"NodeNames":["a"],"nodeNames":["b"]}', ["b"]),
        ('{"NodeNames":["a"],"Unheard":{"of":[1]}}', ["a"]),
    ],
)
def test_nodes_that_are_left_are_read_as_go_reads_them(answer: str, names: list[str]) -> None:
    assert list(read_filter(answer.encode(), by_name=True).names) == names


def test_names_count_only_from_an_extender_that_is_asked_by_name() -> None:
    """One that answers both ways, as Go programs with an empty list for the absent one do, means the nodes."""
    for both in (b'{"Nodes":{"items":[{"metadata":{"name":"a"}}]},"NodeNames":[]}',
                 b'{"nodes":{"items":[{"metadata":{"name":"a"}}]},"nodenames":[]}'):  # fmt: skip
        assert list(read_filter(both, by_name=False).names) == ["a"]
        assert list(read_filter(both, by_name=True).names) == []
    assert list(read_filter(b'{"NodeNames":[]}', by_name=False).names) == []
    for names in (b'{"NodeNames":["a"]}', b'{"nodenames":["a"],"nodes":null}'):
        with pytest.raises(MalformedAnswerError, match="which it may if it is nodeCacheCapable"):
            read_filter(names, by_name=False)


def test_reasons_are_read_and_an_error_is_all_there_is() -> None:
    answer = b'{"failednodes":{"A":"why","B":null},"FailedAndUnresolvableNodes":{"c":"never"},"Error":null}'
    assert read_filter(answer, by_name=True) == FilterResult((), {"A": "why", "B": ""}, {"c": "never"})
    assert read_filter(b'{"NodeNames":["a"],"error":"broken"}', by_name=True) == FilterResult(error="broken")


@pytest.mark.parametrize(
    ("answer", "scores"),
    [
        ('[{"Host":"a","Score":3},{"host":"b","score":10}]', {"a": 3, "b": 10}),
        ('[{"Host":"a","Score":3},{"Host":"a","Score":4},{"Host":"b"},null]', {"a": 7, "b": 0, "": 0}),
        ("null", {}),
        ("[]", {}),
    ],
)
def test_priorities_are_read_as_go_reads_them(answer: str, scores: dict[str, int]) -> None:
    assert read_priorities(answer.encode()) == scores


def test_victims_are_read_by_node() -> None:
    answer = b'{"nodenametometavictims":{"A":{"pods":[{"uid":"1"}],"numpdbviolations":2},"b":{"Pods":null}}}'
    assert read_preemption(answer) == {"A": Removal(("1",), 2), "b": Removal((), 0)}
    assert read_preemption(b"{}") == {}


def test_what_came_of_a_binding_is_read() -> None:
    assert read_binding(b'{"Error":""}') == read_binding(b"null") == read_binding(b"{}") == ""
    assert read_binding(b'{"error":"no"}') == "no"


@pytest.mark.parametrize("answer", [
    "", "{", "[]", '"text"', "<html>", '{"NodeNames":"a"}', '{"NodeNames":[1]}', '{"Nodes":[]}', '{"Error":1}',
    '{"Nodes":{"items":[1]}}', '{"Nodes":{"items":[{"metadata":[]}]}}', '{"FailedNodes":["a"]}', "\xff", "{} {}",
    '{"Unheard":' + "[" * 10_000 + "}",
])  # fmt: skip
def test_garbage_is_no_answer_to_filter(answer: str) -> None:
    with pytest.raises(MalformedAnswerError):
        read_filter(answer.encode("latin-1"), by_name=True)


@pytest.mark.parametrize("answer", [
    "{}", '[{"Host":1}]', '[{"Host":"a","Score":"3"}]', '[{"Host":"a","Score":3.5}]',
    '[{"Host":"a","Score":9223372036854775808}]', "[1]", "",
])  # fmt: skip
def test_garbage_is_no_answer_to_prioritize(answer: str) -> None:
    with pytest.raises(MalformedAnswerError):
        read_priorities(answer.encode())


@pytest.mark.parametrize("victims", ["[]", '{"n":null}', '{"n":[]}', '{"n":{"Pods":["uid"]}}', '{"n":{"Pods":{}}}'])
def test_garbage_is_no_answer_to_preempt(victims: str) -> None:
    with pytest.raises(MalformedAnswerError):
        read_preemption(b'{"NodeNameToMetaVictims":%b}' % victims.encode())


# ---- any text

NAMES = ("Nodes", "nodenames", "NodeNames", "items", "metadata", "name", "FailedNodes", "Error", "Host", "Score",
         "NodeNameToMetaVictims", "Pods", "UID", "NumPDBViolations", "n")  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100)
@given(VALUES.map(json.dumps).map(str.encode) | st.binary(max_size=20))
def test_any_answer_is_read_or_malformed(body: bytes) -> None:
    with contextlib.suppress(MalformedAnswerError):
        read_filter(body, by_name=True)
    for read in (read_priorities, read_preemption, read_binding):
        with contextlib.suppress(MalformedAnswerError):
            read(body)


@settings(max_examples=100)
@given(VALUES, st.booleans())
def test_the_quick_way_reads_what_the_other_reads(value: object, by_name: bool) -> None:
    """Of answers with the names that Go programs write, and of all others."""
    for body in (json.dumps(value), json.dumps({"Nodes": {"items": value}}), json.dumps({"FailedNodes": value})):
        data = body.encode()
        try:
            wanted = wire._read_filter(data, by_name=by_name)
        except MalformedAnswerError:
            continue
        assert read_filter(data, by_name=by_name) == wanted
