from __future__ import annotations

from ksp.policy.texts import PolicyTexts
from ksp.source.diagnostic import Diagnostic
from ksp.source.text import Source

RULE = 'predicate A implements A {\n  deny "no" when node.name == ""\n}\n'


def texts(files: dict[str, str], roots: tuple[str, ...] = ("a.ksp",), **more: str) -> PolicyTexts:
    return PolicyTexts("x", files, roots, **more)


def test_equal_texts_are_equal_whatever_they_are_called() -> None:
    first = PolicyTexts("one", {"a.ksp": RULE, "b.ksp": ""}, ("a.ksp",), shown="/etc")
    other = PolicyTexts("other", {"b.ksp": "", "a.ksp": RULE}, ("a.ksp",))
    assert first.sha256 == other.sha256


def test_whatever_makes_another_policy_makes_another_hash() -> None:
    different = [
        texts({"a.ksp": RULE}),
        texts({"a.ksp": RULE + "\n"}),
        texts({"b.ksp": RULE}),
        texts({"a.ksp": RULE}, ()),
        texts({"a.ksp": RULE}, (), legacy="a.ksp"),
        texts({"a.ksp": RULE, "b.ksp": ""}),
        texts({"a.kspb.ksp": RULE}),
    ]
    assert len({each.sha256 for each in different}) == len(different)


def test_the_origin_has_the_policies_under_the_names_that_users_know() -> None:
    origin = texts({"lib/a.ksp": RULE, "nodes.yaml": "kind: Node"}, shown="/etc/ksp").origin()
    found = origin.read("lib/a.ksp")
    assert isinstance(found, Source)
    assert (found.name, found.text) == ("/etc/ksp/lib/a.ksp", RULE)
    assert origin.read("nodes.yaml") is None
    assert list(origin.files()) == ["lib/a.ksp"]


def test_a_text_that_is_no_policy_is_a_diagnostic_that_does_not_quote_it() -> None:
    found = texts({"a.ksp": "root:x:0:0:secret"}).origin().read("a.ksp")
    assert isinstance(found, Diagnostic)
    assert found.code == "KSP0104"
    assert found.span.source.text == ""


def test_tests_are_found_by_their_names() -> None:
    assert texts({"a.ksp": "", "b.test.ksp": "", "a.test.ksp": ""}).tests == ("a.test.ksp", "b.test.ksp")
