"""`docs/configuration.md` has a row for every field that the decoder knows, and a test that exists; its lists are those
of the code."""

from __future__ import annotations

import re
from functools import cache

import pytest
from tests.docs.configuration_rows import PAGE, ROOT, ROWS, known, with_table

from ksp.policy.configuration import ConfigurationError, profiles_of, read_configuration
from ksp.policy.configuration.default_plugins import WITHOUT_RULE
from ksp.policy.configuration.versions import Version
from ksp.policy.load import load
from ksp.policy.profile import ProfileBuilder
from ksp.source.origin import Texts


@cache
def page() -> str:
    return PAGE.read_text("utf-8")


@cache
def named_in(path: str) -> frozenset[str]:
    return frozenset(re.findall(r"^def (test_\w+)", (ROOT / "tests" / path).read_text("utf-8"), re.MULTILINE))


def test_every_field_has_its_row_and_no_other_is_there() -> None:
    assert ROWS.keys() == known().keys()


def test_the_table_is_that_of_the_code() -> None:
    assert with_table(page()) == page(), "run `python -m tests.docs.configuration_rows`"


@pytest.mark.parametrize("test", sorted({test for _, test in ROWS.values()}))
def test_the_test_of_a_row_exists(test: str) -> None:
    path, _, name = test.partition("::")
    assert name in named_in(path)


def test_plugins_without_a_rule_are_listed() -> None:
    listed = page().partition("No rule, and a warning:")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(WITHOUT_RULE)


def test_every_version_is_named() -> None:
    for version in Version:
        assert f"`{version.value}`" in page()


def test_the_examples_on_the_page_can_be_used() -> None:
    examples = re.findall(r"^```yaml\n(.*?)^```$", page(), re.DOTALL | re.MULTILINE)
    assert examples
    for text in examples:
        configuration = read_configuration(text, "page")
        module = load(Texts({}), configuration.rules).module
        assert module is not None
        assert profiles_of(configuration, module, ProfileBuilder()).warnings == ()


def test_errors_on_the_page_are_those_of_the_code() -> None:
    said = re.search(r"^```console\n.*?^```$", page(), re.DOTALL | re.MULTILINE)
    assert said is not None
    (text,) = re.findall(r"^\$ cat > wrong.yaml.*?\n(.*?)^EOF$", said[0], re.DOTALL | re.MULTILINE)
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(text, "wrong.yaml")
    assert "".join(f"Error: {message}\n" for message in caught.value.messages) in said[0]
