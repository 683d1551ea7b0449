"""One function for each warning and piece of advice: what is most likely a mistake, and what could be better.

None stops a policy from being loaded."""

from __future__ import annotations

from ksp.check.report import Report
from ksp.source.text import Span


def maybe_absent(report: Report, span: Span, what: str) -> None:
    report.warning(
        "KSP0701", span, f"{what} also holds where the key is absent", "an absent key reads as zero",
        "say what an absent key means: test `KEY in MAP` in the same expression",
    )  # fmt: skip


def both_absent(report: Report, span: Span) -> None:
    report.warning(
        "KSP0701", span, "`==` also holds where both keys are absent", "two absent keys are equal",
        "test one of the keys in the same expression: `KEY in MAP && …`",
    )  # fmt: skip


def rule_in_no_provider(report: Report, span: Span, kind: str, name: str) -> None:
    help = "name it in a provider; in a file without a provider or profile, rules wait for others to name them"
    report.warning("KSP0705", span, f"the {kind} `{name}` is in no provider", "never asked", help)


def provider_in_no_profile(report: Report, span: Span, name: str) -> None:
    help = f'write `profile "…" uses {name} {{}}`, or remove it'
    report.warning("KSP0705", span, f"the provider `{name}` is in no profile", "decides for no pod", help)


def score_may_leave(report: Report, span: Span, label: str) -> None:
    help = "add `normalize`, or bound it, as in `max(0, min(100, …))`: an attempt that scores outside fails"
    report.warning("KSP0706", span, "this score can leave 0 to 100", label, help)


def could_be_prefilter(report: Report, span: Span) -> None:
    report.advice(
        "KSP0702",
        span,
        "this `deny` does not depend on the node",
        "the same for all nodes",
        "move it under `prefilter`",
    )


def raw_labels(report: Report, span: Span) -> None:
    report.advice(
        "KSP0703", span, "the rule reads all of the pod's labels", "every set of labels is a class of its own"
    )


def unused(report: Report, span: Span, what: str, name: str) -> None:
    report.warning("KSP0704", span, f"{what} `{name}` is never used", "not used")
