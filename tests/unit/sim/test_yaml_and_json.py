"""Texts become the values that kubectl would read, and nothing a text holds does harm."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ksp.sim.documents import field_lines, read_documents
from ksp.sim.texts import MAX_BYTES
from ksp.source.yaml_values import MAX_DEPTH, TextError

KEYS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=8).filter(lambda key: key != "<<")
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=12) | st.floats(-1e9, 1e9)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
OBJECTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


def read(text: str) -> object:
    (document,) = read_documents(text.encode())
    return document.value


@given(OBJECTS, st.booleans())
def test_both_formats_give_back_what_was_written(value: dict[str, object], flow: bool) -> None:
    assert read(json.dumps(value, indent=1)) == value
    assert read(yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True, sort_keys=False)) == value


@given(st.binary(max_size=60) | st.text("{}[]:-,&*!?|>'\"#%@ \n\tab0<", max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(TextError):
        read_documents(data)
    field_lines(data, [(0, "a", 1)])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("017", 15),
        ("0x1F", 31),
        ("-0b101", -5),
        ("1_000", 1000),
        ("0x_", "0x_"),
        ("0b", "0b"),
        ("9" * 5000, "9" * 5000),
        ("0x" + "f" * 5000, "0x" + "f" * 5000),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1e999", "1e999"),
        ("12:30:45", "12:30:45"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("100m", "100m"),
        ("n", "n"),
    ],
)
def test_plain_scalars_mean_what_kubectl_takes_them_for(text: str, value: object) -> None:
    assert read(f"a: {text}") == {"a": value}


def test_keys_are_text() -> None:
    assert read("1: a\ntrue: b") == {"1": "a", "true": "b"}


def test_aliases_and_merges() -> None:
    text = "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: {<<: [*b, {z: 4}]}\nthree: *b"
    assert read(text) == {
        "base": {"x": 1, "y": 2},
        "one": {"y": 3, "x": 1},
        "two": {"x": 1, "y": 2, "z": 4},
        "three": {"x": 1, "y": 2},
    }


def test_documents_are_numbered_and_empty_ones_left_out() -> None:
    documents = read_documents(b"---\n---\na: 1\n---\n# nothing\n---\n\nb: 2\n")
    assert [(document.number, document.line, document.value) for document in documents] == [
        (1, 3, {"a": 1}),
        (3, 8, {"b": 2}),
    ]


@pytest.mark.parametrize(
    "text",
    ["kind: List\nitems:\n- a: 1\n-\n  b: 2\n- c", '{"kind": "List",\n"items": [\n{"a": 1},\n\n{"b": 2}, "c"]}'],
)
def test_items_have_lines(text: str) -> None:
    (document,) = read_documents(text.encode())
    assert document.item_lines == ((3, 5, 6) if text.startswith("kind") else (3, 5, 5))


def test_equal_items_are_told_apart() -> None:
    (document,) = read_documents(b'{"items": [\n{},\n{"a": {}},\n{}]}')
    assert document.item_lines == (2, 3, 4)


def test_text_before_the_items_is_not_taken_for_one() -> None:
    (document,) = read_documents(b'{"metadata": {"items": [{}]},\n"note": "\\"items\\"",\n"items": [\n{}]}')
    assert document.item_lines == (4,)


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (bomb(20), 6, "aliases stand for more than 1,000,000 values"),
        ("a:\n " + "[" * 100_000, 2, f"nested deeper than {MAX_DEPTH} levels"),
        ('{"a":' * 200 + "1" + "}" * 200, 1, f"nested deeper than {MAX_DEPTH} levels"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, 1, f"nested deeper than {MAX_DEPTH} levels"),
        ("a: 1\nb: 2\na: 3", 3, "`a` stands twice in the same map"),
        ("a: &x\n  - *x", 2, "the alias `*x` has no anchor before it"),
        ("a: 1\n? [b]\n: c", 2, "a key must be text"),
        ("a: 1\n? *b\n: c", 2, "the alias `*b` has no anchor before it"),
        ("a: !!python/object:os.system x", 1, "is not supported"),
        ("a: !thing x", 1, "the tag `!thing` is not supported"),
        ("a: 1\n<<: 2", 1, "`<<` takes a map or a list of maps"),
        ("a: 1\n b: 2", 2, "not YAML: mapping values are not allowed in this context"),
        ("a: 1\nb: 'x", 2, "not YAML: found unexpected end of stream"),
        ("a: 1\nb: \x01", 2, "not YAML: control characters are not allowed"),
        ('{"a": 1,\n"b": 2,,}', 2, "not JSON: "),
    ],
)
def test_what_cannot_be_read_says_where(text: str, line: int, message: str) -> None:
    with pytest.raises(TextError) as caught:
        read_documents(text.encode())
    assert message in caught.value.message
    assert caught.value.line == line


def test_bytes_that_are_not_text() -> None:
    with pytest.raises(TextError) as caught:
        read_documents(b"a: 1\nb: \xff")
    assert (caught.value.line, caught.value.message) == (2, "not UTF-8 text")


def test_a_text_that_is_too_large() -> None:
    with pytest.raises(TextError, match="larger than 64 MiB"):
        read_documents(bytes(MAX_BYTES + 1))


TEXT = """# first
a: 1
---
spec:
  containers:
    - name: x
      image:
        5
    - {name: y, resources: {
        limits: 7}}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((0, "a"), 2),
        ((1, "spec"), 4),
        ((1, "spec", "containers", 0, "image"), 7),
        ((1, "spec", "containers", 1), 9),
        ((1, "spec", "containers", 1, "resources", "limits"), 10),
        ((1, "spec", "containers", 1, "missing"), 9),
        ((1, "spec", "nodeName"), 4),
        ((7, "a"), 0),
    ],
)
def test_lines_of_fields(path: tuple[str | int, ...], line: int) -> None:
    assert field_lines(TEXT.encode(), [path]) == {path: line}
