"""What `ksp vet` looks at, in this process; tests/unit/runtime/reload/test_child.py has it as a process."""

from __future__ import annotations

import json

from ksp.cli.vetting import vetted
from ksp.policy.assemble import Settings
from ksp.policy.texts import PolicyTexts
from ksp.runtime.reload.verdict import Verdict

RULES = """
/// Labelled.
predicate Labelled implements Labelled {
  deny "no disk" when !("disk" in node.labels)
}

provider P {
  predicates { Labelled }
  priorities { }
}

profile "a" uses P { }
profile "b" uses P { }
"""
TEST = """import "a.ksp"

test "t" {
  node n from "nodes.yaml"
  pod p { }
  expect Labelled admits p on n
}
"""
NODE = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n\n  labels: {disk: ssd}\n"


def of(files: dict[str, str], **settings: str) -> Verdict:
    roots = tuple(path for path in files if path.endswith(".ksp") and not path.endswith(".test.ksp"))
    return vetted(PolicyTexts("x", files, roots, shown="/etc/ksp"), Settings(**settings))  # type: ignore[arg-type]


def legacy(policy: object) -> Verdict:
    return vetted(PolicyTexts("x", {"policy.cfg": json.dumps(policy)}, (), legacy="policy.cfg"), Settings())


def test_tests_find_their_fixtures_among_the_texts() -> None:
    verdict = of({"a.ksp": RULES, "a.test.ksp": TEST, "nodes.yaml": NODE})
    assert (verdict.ok, verdict.message, verdict.passed, verdict.failed) == (True, "", 1, 0)


def test_a_test_that_is_not_met_is_told_with_its_place_and_what_happened() -> None:
    verdict = of({"a.ksp": RULES, "a.test.ksp": TEST, "nodes.yaml": NODE.replace("ssd", "x").replace("disk", "cpu")})
    assert (verdict.ok, verdict.stage, verdict.passed, verdict.failed) == (False, "test", 0, 1)
    assert verdict.message == '/etc/ksp/a.test.ksp:6: "t": expected Labelled admits p on n: it is denied: "no disk"'


def test_a_fixture_that_is_not_among_the_texts_is_a_mistake() -> None:
    verdict = of({"a.ksp": RULES, "a.test.ksp": TEST})
    assert (verdict.ok, verdict.stage) == (False, "test")
    assert "/etc/ksp/nodes.yaml: there is no such file" in verdict.message


def test_what_the_flags_make_of_it_counts() -> None:
    verdict = of({"a.ksp": RULES}, scheduler_name="c")
    assert (verdict.ok, verdict.stage) == (False, "check")
    assert "declares several profiles" in verdict.message


def test_mistakes_are_shown_as_ksp_check_does() -> None:
    verdict = of({"a.ksp": RULES.replace("node.labels", "nod.labels")})
    assert verdict.stage == "check"
    assert "error[KSP0202]: nothing here is called `nod`\n --> /etc/ksp/a.ksp:4:" in verdict.message


def test_a_policy_of_kube_scheduler_is_tried_too() -> None:
    predicates = [{"name": "PodFitsResources"}]
    policy = {"kind": "Policy", "apiVersion": "v1", "predicates": predicates, "priorities": []}
    assert legacy(policy).ok
    verdict = legacy({**policy, "predicates": [{"name": "Nonsense"}]})
    assert (verdict.ok, verdict.stage) == (False, "check")
    assert "Nonsense" in verdict.message
