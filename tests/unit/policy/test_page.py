"""`docs/unread-fields.md` says what the code says; `python -m tests.unit.policy.test_page` writes its table anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.page import fences, section, with_section
from tests.unit.core.scheduling import REQUIRED, cluster, cycle_of, default_profile, info, node, profile_of

from ksp.policy.api_fields import FIELDS, ApiField, Without
from ksp.policy.load import load, profiles
from ksp.policy.profile import Profile
from ksp.policy.unread import Unread, UnreadBy, UnreadFields, unread_fields, unread_of_running
from ksp.source.origin import Texts

PAGE = Path(__file__).parents[3] / "docs" / "unread-fields.md"
HEADS = ("field", "", "what it says")
BECOMES = {Without.BROKEN: "refused", Without.WORSE: "warned", Without.LEFT_OUT: "left out: warned"}
ZONE = "zone"
MIN_DOMAINS = "spec.topologySpreadConstraints[].minDomains"


def table() -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (HEADS, ("---",) * 3, *map(_row, FIELDS)))


def _row(field: ApiField) -> Iterator[str]:
    yield f"`{field.path}`" + (f" ({field.when})" if field.when else "")
    yield BECOMES[field.without]
    yield field.meaning


def example() -> Profile:
    text = re.search(r"^```ksp\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert text is not None
    found = load(Texts({"page.ksp": text[1]}), "page.ksp")
    assert found.module is not None, found.diagnostics
    assert not found.diagnostics
    return next(profile for profile in profiles(found.module) if profile.scheduler_name == "default-scheduler")


def test_the_table_is_that_of_the_code() -> None:
    assert section(PAGE.read_text(encoding="utf-8"), "fields") == table()


def test_the_modes_are_those_of_the_code() -> None:
    modes = "|".join(mode.value for mode in UnreadFields)
    assert f"--unread-fields={modes}`" in PAGE.read_text(encoding="utf-8")


def test_the_message_is_that_of_the_code() -> None:
    said = UnreadBy(default_profile(), UnreadFields.REFUSE).refusal(Unread((MIN_DOMAINS,)))
    assert said in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_example_sees_to_the_field() -> None:
    constraint = {
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }  # fmt: skip
    spec = {"labels": {"app": "web"}, "topologySpreadConstraints": [{**constraint, "minDomains": 3}]}
    profile = example()
    assert UnreadBy(profile, UnreadFields.REFUSE).of(info("p", **spec)) == Unread()

    two = cluster(node("a", labels={ZONE: "a"}), node("b", labels={ZONE: "b"}))
    two.add_pod(info("runs", labels={"app": "web"}), "a")
    two.add_pod(info("runs too", labels={"app": "web"}), "b")
    without = {**spec, "topologySpreadConstraints": [constraint]}
    assert cycle_of(profile, two).decide(info("p", **without)).node
    assert cycle_of(profile, two).decide(info("p", **spec)).denied_by == {"MinDomains"}
    two.set_node(node("c", labels={ZONE: "c"}))
    assert cycle_of(profile, two).decide(info("p", **spec)).node == "c"


def test_the_example_for_namespace_selectors_sees_to_both_sides() -> None:
    (text,) = (fence.text for fence in fences("ksp") if "AwayFromNamespaces" in fence.text)
    profile = profile_of(text, "predicates { AwayFromNamespaces }")
    own = f"spec.affinity.podAntiAffinity.{REQUIRED}[].namespaceSelector"
    assert own not in {field.path for field in unread_fields(profile)}
    assert own not in {field.path for field in unread_of_running(profile)}


def main() -> None:
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), "fields", table()), encoding="utf-8")


if __name__ == "__main__":
    main()
