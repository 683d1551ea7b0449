from __future__ import annotations

import pytest

from ksp.model.labels import label_value_error, qualified_name_error, quote

NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
DOMAIN = (
    "a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize("value", ["", "a", "A.b-c_d", "1", "x" * 63])
def test_label_values(value: str) -> None:
    assert label_value_error(value) == ""


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("-1", VALUE),
        ("a b", VALUE),
        ("a\n", VALUE),
        ("x" * 64, "must be no more than 63 characters"),
        ("é" * 32, "must be no more than 63 characters; " + VALUE),
    ],
)
def test_what_is_no_label_value(value: str, error: str) -> None:
    assert label_value_error(value) == error


@pytest.mark.parametrize("key", ["a", "A.b_c-d", "example.com/name", "kubernetes.io/hostname", "x" * 63])
def test_label_keys(key: str) -> None:
    assert qualified_name_error(key) == ""


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("", f"name part must be non-empty; name part {NAME}"),
        ("a b", f"name part {NAME}"),
        ("/a", "prefix part must be non-empty"),
        ("Example.com/a", f"prefix part {DOMAIN}"),
        ("a/", f"name part must be non-empty; name part {NAME}"),
        ("x" * 64, "name part must be no more than 63 characters"),
        ("a" * 254 + "/b", "prefix part must be no more than 253 characters"),
        ("a/b/c", f"a qualified name {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"),
    ],
)
def test_what_is_no_label_key(key: str, error: str) -> None:
    assert qualified_name_error(key) == error


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("In", '"In"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("\n\t\x00\x7f", '"\\n\\t\\x00\\x7f"'),
        ("é", '"é"'),
        ("\u2028\U000e0001", '"\\u2028\\U000e0001"'),
    ],
)
def test_quoting_as_go_does(text: str, quoted: str) -> None:
    assert quote(text) == quoted
