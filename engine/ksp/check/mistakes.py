"""One function for each mistake in names, types and rules: its code and its words, in one place."""

from __future__ import annotations

from collections.abc import Iterable

from ksp.check.report import Report, did_you_mean
from ksp.check.types import Dimension, Type, show, show_dimension
from ksp.source.diagnostic import Note
from ksp.source.text import Span

# ---- names and types


def article(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def unknown_field(report: Report, span: Span, owner: str, name: str, known: Iterable[str]) -> None:
    report.error("KSP0201", span, f"{article(owner)} has no field `{name}`", did_you_mean(name, known) or "no such field")


def unknown_name(report: Report, span: Span, name: str, known: Iterable[str], hint: str = "") -> None:
    report.error("KSP0202", span, f"nothing here is called `{name}`", did_you_mean(name, known) or "not known here", hint)


def unknown_function(report: Report, span: Span, name: str, known: Iterable[str], on: Type | None = None) -> None:
    message = f"there is no function `{name}`" if on is None else f"{article(show(on))} has no method `{name}`"
    report.error("KSP0203", span, message, did_you_mean(name, known) or "not known")


def wrong_arguments(report: Report, span: Span, name: str, got: Iterable[Type], signatures: Iterable[str]) -> None:
    given = ", ".join(show(type) for type in got)
    wanted = "; ".join(signatures)
    report.error("KSP0204", span, f"`{name}` does not take ({given})", f"it is {wanted}")


def wrong_type(report: Report, span: Span, wanted: Type | str, got: Type, what: str = "this") -> None:
    wanted_text = wanted if isinstance(wanted, str) else f"`{show(wanted)}`"
    report.error("KSP0205", span, f"{what} must be {wanted_text}, not `{show(got)}`", f"this is `{show(got)}`")


def wrong_dimension(report: Report, span: Span, operator: str, left: Dimension, right: Dimension) -> None:
    a, b = show_dimension(left), show_dimension(right)
    help = "write the number as a quantity, such as `2Gi` or `500m`" if "int" in (a, b) else ""
    report.error("KSP0206", span, f"`{operator}` of different dimensions: {a} and {b}", f"{a} {operator} {b}", help)


def wrong_operands(report: Report, span: Span, operator: str, types: Iterable[Type]) -> None:
    shown = " and ".join(f"`{show(type)}`" for type in types)
    report.error("KSP0207", span, f"`{operator}` does not work on {shown}", "no such operation")


def mixed(report: Report, span: Span, what: str, first: Type, other: Type) -> None:
    report.error("KSP0208", span, f"{what} differ in type: `{show(first)}` and `{show(other)}`", f"this is `{show(other)}`")


def unknown_type(report: Report, span: Span, name: str, known: Iterable[str]) -> None:
    report.error("KSP0209", span, f"there is no type `{name}`", did_you_mean(name, known) or "not a type")


def declared_twice(report: Report, span: Span, name: str, first: Span | None) -> None:
    notes = (Note(first, "first declared here"),) if first else ()
    report.error("KSP0210", span, f"`{name}` is declared already", "again here", notes=notes)


def division(report: Report, span: Span, operator: str, divisor: str) -> None:
    name = "div(a, b, otherwise)" if operator == "/" else f"{divisor} != 0 ? … % {divisor} : 0"
    report.error(
        "KSP0211", span, f"`{operator}` where the divisor can be 0", "may be 0",
        f"write `{name}`, or test `{divisor} != 0` in the same expression",
    )  # fmt: skip


def out_of_range(report: Report, span: Span) -> None:
    report.error("KSP0212", span, "a number outside of 64 bits", "does not fit in an int")


def bad_quantity(report: Report, span: Span, text: str, unit: str) -> None:
    report.error("KSP0213", span, f"`{text}` is not a whole number of {unit}", f"not whole in {unit}")


def recursion(report: Report, span: Span, names: list[str]) -> None:
    report.error("KSP0214", span, f"`{names[0]}` calls itself: {' -> '.join(names)}", "functions must not be recursive")


def bad_pattern(report: Report, span: Span, reason: str) -> None:
    report.error("KSP0215", span, f"the pattern is not RE2: {reason}", "not a pattern")


def pattern_not_constant(report: Report, span: Span) -> None:
    report.error("KSP0215", span, "the pattern of `matches` must be a string literal without `${…}`", "not a literal")


def bad_macro(report: Report, span: Span, name: str, reason: str) -> None:
    report.error("KSP0216", span, f"`{name}` {reason}", "", f"write `xs.{name}(x, …)` or `xs.{name}(i, x, …)`")


def entry_twice(report: Report, span: Span, name: str) -> None:
    report.error("KSP0217", span, f"`{name}` is given twice", "again here")


def no_type_known(report: Report, span: Span, what: str) -> None:
    report.error("KSP0218", span, f"the type of {what} is not known", "empty", "name the type: `let x: list<string> = []`")


def not_a_collection(report: Report, span: Span, type: Type, use: str) -> None:
    report.error("KSP0219", span, f"{article(show(type))} cannot be {use}", f"this is `{show(type)}`")


def relation_outside_view(report: Report, span: Span, name: str) -> None:
    report.error(
        "KSP0220", span, f"`{name}` can only be read by a view", "a relation",
        f"declare a view: `view NAME = count x in {name} where … by …`",
    )  # fmt: skip


def not_a_value(report: Report, span: Span, name: str, what: str) -> None:
    report.error("KSP0221", span, f"`{name}` is {what}, not a value", "not a value")


# ---- rules


def misplaced(report: Report, span: Span, what: str, where: str, help: str = "") -> None:
    report.error("KSP0301", span, f"{what} cannot stand in {where}", "not here", help)


def no_score(report: Report, span: Span, name: str) -> None:
    report.error("KSP0302", span, f"the priority `{name}` gives no score", "no `score` in it", "add `score EXPR`")


def score_twice(report: Report, span: Span, what: str) -> None:
    report.error("KSP0302", span, f"a second {what}", "there is one already")


def after_score(report: Report, span: Span, what: str) -> None:
    report.error("KSP0303", span, f"{what} after the score", "too late", "move it above `score`")


def view_reads_node(report: Report, span: Span) -> None:
    report.error(
        "KSP0304", span, "a view cannot read the node under test", "depends on `node`",
        "group the view `by` a key, and look the node's entry up where the view is read",
    )  # fmt: skip


def view_reads_view(report: Report, span: Span, what: str) -> None:
    report.error("KSP0305", span, f"a view cannot read {what}", "not in a view")


def node_too_early(report: Report, span: Span, keyword: str) -> None:
    report.error(
        "KSP0306", span, f"`{keyword}` decides before any node is looked at", "depends on `node`",
        f"move the statement out of `{keyword}`",
    )  # fmt: skip


def not_a_relation(report: Report, span: Span, where: str) -> None:
    report.error("KSP0307", span, f"a view runs over {where}", "not a relation")


def bad_view(report: Report, span: Span, reason: str) -> None:
    report.error("KSP0308", span, reason, "not possible")


def score_of_node(report: Report, span: Span) -> None:
    report.error("KSP0309", span, "`score` of a node is known only in `normalize { … }`", "no score yet")


def not_constant(report: Report, span: Span, what: str) -> None:
    report.error("KSP0310", span, f"{what} must be constant", "not known before a pod is there")


def node_in_fn(report: Report, span: Span, name: str) -> None:
    report.error(
        "KSP0202", span, f"nothing here is called `{name}`", "not known here",
        "a `fn` at the top of a file sees its arguments and `cluster`; pass what it needs",
    )  # fmt: skip


# ---- limits


def too_costly(report: Report, span: Span, name: str, cost: str) -> None:
    report.error("KSP0401", span, f"`{name}` costs {cost}, more than a rule may", "too many nested passes")


def too_large(report: Report, span: Span, name: str, what: str) -> None:
    report.error("KSP0402", span, f"`{name}` is too large once its functions are put in: {what}", "too large")


def may_grow(report: Report, span: Span, what: str) -> None:
    report.error("KSP0403", span, f"this {what} can grow beyond what a rule may make", "too large")


def too_many(report: Report, span: Span, what: str, most: int) -> None:
    report.error("KSP0404", span, f"more than {most} {what}", "one too many")


# ---- imports, providers, profiles


def import_missing(report: Report, span: Span, path: str) -> None:
    report.error("KSP0501", span, f"there is no file `{path}` in this source", "not found")


def import_cycle(report: Report, span: Span, path: str) -> None:
    report.error("KSP0502", span, f"`{path}` imports this file already", "imports in a circle")


def import_refused(report: Report, span: Span, path: str, reason: str) -> None:
    help = "import a file below the same root, or of the shipped library: `import \"ksp:lib/nodes.ksp\"`"
    report.error("KSP0503", span, f"`{path}` cannot be imported: {reason}", "not allowed", help)


def unknown_rule(report: Report, span: Span, kind: str, name: str, known: Iterable[str], is_a: str = "") -> None:
    label = f"it is {is_a}" if is_a else did_you_mean(name, known) or f"not a {kind}"
    report.error("KSP0504", span, f"there is no {kind} `{name}`", label)


def rule_twice(report: Report, span: Span, name: str, first: Span | None) -> None:
    notes = (Note(first, "it stands here already"),) if first else ()
    report.error("KSP0505", span, f"`{name}` stands in this provider twice", "again here", notes=notes)


def provider_cycle(report: Report, span: Span, name: str) -> None:
    report.error("KSP0506", span, f"the provider `{name}` leads back to itself", "in a circle")


def nothing_to_remove(report: Report, span: Span, name: str, known: Iterable[str]) -> None:
    report.error("KSP0507", span, f"`{name}` is not in the provider", did_you_mean(name, known) or "nothing to remove")


def unknown_parameter(report: Report, span: Span, rule: str, name: str, known: Iterable[str]) -> None:
    report.error("KSP0508", span, f"`{rule}` has no parameter `{name}`", did_you_mean(name, known) or "no such parameter")


def bad_weight(report: Report, span: Span, reason: str) -> None:
    report.error("KSP0509", span, f"a weight {reason}", "not a weight")


def bad_setting(report: Report, span: Span, reason: str, label: str) -> None:
    report.error("KSP0510", span, reason, label)


# ---- tests


def unknown_object(report: Report, span: Span, message: str, label: str) -> None:
    report.error("KSP0601", span, message, label)


def bad_object(report: Report, span: Span, reason: str) -> None:
    report.error("KSP0602", span, reason, "not a valid object")


def bad_expectation(report: Report, span: Span, reason: str, label: str = "cannot be expected") -> None:
    report.error("KSP0603", span, reason, label)


# ---- advice


def maybe_absent(report: Report, span: Span, what: str) -> None:
    report.warning(
        "KSP0701", span, f"{what} also holds where the key is absent", "an absent key reads as zero",
        "say what an absent key means: test `KEY in MAP` in the same expression",
    )  # fmt: skip


def could_be_prefilter(report: Report, span: Span) -> None:
    report.advice("KSP0702", span, "this `deny` does not depend on the node", "the same for all nodes", "move it under `prefilter`")


def raw_labels(report: Report, span: Span) -> None:
    report.advice("KSP0703", span, "the rule reads all of the pod's labels", "every set of labels is a class of its own")


def unused(report: Report, span: Span, what: str, name: str) -> None:
    report.warning("KSP0704", span, f"{what} `{name}` is never used", "not used")
