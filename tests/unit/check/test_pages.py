"""The pages of the checker's diagnostics: what they show is what a user sees."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from ksp.check.program import Checker
from ksp.check.reach import warn_of_unreached
from ksp.source.catalogue import CATALOGUE
from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.origin import Texts

CHECKED = sorted(code for code in CATALOGUE if not code.startswith("KSP01"))
FENCE = re.compile(r"^(\w+):\n\n```ksp\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def examples(code: str) -> dict[str, str]:
    return dict(FENCE.findall(CATALOGUE[code].page))


def found_in(text: str) -> list[Diagnostic]:
    checker = Checker(Texts({"main.ksp": text}))
    module = checker.check("main.ksp")
    assert module is not None
    warn_of_unreached(checker.report, [module])
    return checker.report.found


def test_the_catalogue_has_the_codes_of_the_checker_and_no_others() -> None:
    modules = [file for file in files("ksp.check").iterdir() if file.name.endswith(".py")]
    used = {code for module in modules for code in re.findall(r'"(KSP\d{4})"', module.read_text(encoding="utf-8"))}
    assert used - {"KSP0101"} == set(CHECKED)  # that a file cannot be read is told where several are checked together


@pytest.mark.parametrize("code", CHECKED)
def test_a_page_shows_a_whole_policy_wrong_and_mended(code: str) -> None:
    assert list(examples(code)) == ["Wrong", "Mended"]


@pytest.mark.parametrize("code", CHECKED)
def test_the_wrong_policy_of_a_page_has_this_mistake_and_no_other(code: str) -> None:
    assert {each.code for each in found_in(examples(code)["Wrong"])} == {code}


@pytest.mark.parametrize("code", CHECKED)
def test_the_mended_policy_of_a_page_has_no_mistake(code: str) -> None:
    assert [each for each in found_in(examples(code)["Mended"]) if each.severity is not Severity.ADVICE] == []


@pytest.mark.parametrize("code", CHECKED)
def test_only_advice_lets_a_policy_be_loaded(code: str) -> None:
    stops = {each.severity is Severity.ERROR for each in found_in(examples(code)["Wrong"])}
    assert stops == {not code.startswith("KSP07")}
