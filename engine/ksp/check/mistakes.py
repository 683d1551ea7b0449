"""One function for each mistake in names, types and rules: its code and its words, in one place."""

from __future__ import annotations

from collections.abc import Iterable

from ksp.check.report import Report
from ksp.check.types import BYTES, CPU, PLAIN, Dimension, Double, Int, String, Type, show, show_dimension
from ksp.source.diagnostic import Note
from ksp.source.text import Span

LONGEST_QUOTE = 30  # characters of a user's text that a help repeats

# ---- names and types


def article(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def unknown_field(
    report: Report, span: Span, owner: str, name: str, known: Iterable[str], *, meant: str = "", help: str = ""
) -> None:
    """`meant` is what was most likely meant, where that is no other name among the `known`."""
    label = f"did you mean `{meant}`?" if meant else report.did_you_mean(name, known) or "no such field"
    report.error("KSP0201", span, f"{article(owner)} has no field `{name}`", label, help)


def unknown_objects(report: Report, span: Span, name: str, known: Iterable[str]) -> None:
    report.error(
        "KSP0201", span, f"`cluster` has no `{name}`", report.did_you_mean(name, known) or "not in the cluster"
    )


def unknown_name(report: Report, span: Span, name: str, known: Iterable[str], hint: str = "") -> None:
    report.error(
        "KSP0202", span, f"nothing here is called `{name}`", report.did_you_mean(name, known) or "not known here", hint
    )


def unknown_function(report: Report, span: Span, name: str, known: Iterable[str]) -> None:
    report.error("KSP0203", span, f"there is no function `{name}`", report.did_you_mean(name, known) or "not known")


def unknown_method(
    report: Report, span: Span, name: str, known: Iterable[str], on: Type, *, is_field: bool = False
) -> None:
    label = "it is a field, without `()`" if is_field else report.did_you_mean(name, known) or "not known"
    report.error("KSP0203", span, f"{article(show(on))} has no method `{name}`", label)


def not_parsed(report: Report, span: Span, name: str) -> None:
    report.error("KSP0203", span, f"{article(name)} cannot be parsed from a text", "only parts of objects can")


def wrong_arguments(report: Report, span: Span, name: str, got: Iterable[Type], signatures: Iterable[str]) -> None:
    given = ", ".join(show(type) for type in got)
    wanted = "; ".join(signatures)
    report.error("KSP0204", span, f"`{name}` does not take ({given})", f"it is {wanted}")


def bad_has(report: Report, span: Span) -> None:
    report.error(
        "KSP0204", span, "`has` asks for a field", "not a field",
        "it is has(x.field); of a map or list ask `KEY in MAP`, or `size(LIST) > 0`",
    )  # fmt: skip


def wrong_type(report: Report, span: Span, wanted: Type | str, got: Type, what: str = "this") -> None:
    wanted_text = wanted if isinstance(wanted, str) else f"`{show(wanted)}`"
    report.error("KSP0205", span, f"{what} must be {wanted_text}, not `{show(got)}`", f"this is `{show(got)}`")


def wrong_dimension(report: Report, span: Span, operator: str, left: Dimension, right: Dimension) -> None:
    a, b = show_dimension(left), show_dimension(right)
    if operator == ":":
        report.error("KSP0206", span, f"the two outcomes differ in dimension: {a} and {b}", f"{a} or {b}")
        return
    label = f"{a} {operator} {b}" if not operator.isalnum() else f"{a} and {b}"
    report.error(
        "KSP0206", span, f"`{operator}` of different dimensions: {a} and {b}", label, _as_quantity(left, right)
    )


def dimension_wanted(report: Report, span: Span, wanted: Dimension, got: Dimension, what: str) -> None:
    a, b = show_dimension(wanted), show_dimension(got)
    divide = f"divide by a quantity: `div(x, 1{'cpu' if got == CPU else 'Mi'}, 0)`" if wanted == PLAIN else ""
    help = divide or _as_quantity(wanted, got)
    report.error("KSP0206", span, f"{what} must be `{a}`, not `{b}`", f"this is `{b}`", help)


def _as_quantity(*dimensions: Dimension) -> str:
    if PLAIN not in dimensions:
        return ""
    if CPU in dimensions:
        return "write the number as a quantity, such as `500m` or `2cpu`"
    return "write the number as a quantity, such as `2Gi` or `500M`" if BYTES in dimensions else ""


def wrong_operands(report: Report, span: Span, operator: str, types: Iterable[Type], fraction: str = "") -> None:
    """`fraction` says how to write the fraction that is one of the operands."""
    given = list(types)
    shown = " and ".join(f"`{show(type)}`" for type in given)
    help = fraction
    if not help and any(isinstance(type, Double) for type in given) and any(isinstance(type, Int) for type in given):
        help = "write an int as `double(x)`, or a literal as `1.0`"
    elif operator == "+" and any(isinstance(type, String) for type in given):
        help = "put values into a text with `${…}`"
    report.error("KSP0207", span, f"`{operator}` does not work on {shown}", "no such operation", help)


def mixed(report: Report, span: Span, what: str, first: Type, other: Type) -> None:
    report.error(
        "KSP0208", span, f"{what} differ in type: `{show(first)}` and `{show(other)}`", f"this is `{show(other)}`"
    )


def not_a_field_name(report: Report, span: Span, owner: str) -> None:
    report.error("KSP0201", span, f"a key of {article(owner)} is the name of a field", "not a name")


def unknown_type(report: Report, span: Span, name: str, known: Iterable[str]) -> None:
    report.error("KSP0209", span, f"there is no type `{name}`", report.did_you_mean(name, known) or "not a type")


def declared_twice(report: Report, span: Span, name: str, first: Span | None, what: str = "") -> None:
    """`first` is the other declaration; `what` says what the name is where there is none."""
    notes = (Note(first, "first declared here"),) if first else (Note(None, what),) if what else ()
    report.error("KSP0210", span, f"`{name}` is declared already", "again here", notes=notes)


def division(report: Report, span: Span, operator: str, divisor: str) -> None:
    if len(divisor) > LONGEST_QUOTE or "\n" in divisor:
        divisor = "b"
    guarded = f"`{divisor} != 0 ? a {operator} {divisor} : 0`"
    help = f"write `div(a, {divisor}, 0)`, or {guarded}" if operator == "/" else f"write {guarded}"
    report.error("KSP0211", span, f"`{operator}` where the divisor can be 0", "may be 0", help)


def division_by_zero(report: Report, span: Span, operator: str) -> None:
    report.error("KSP0211", span, f"`{operator}` by 0", "is 0")


def out_of_range(report: Report, span: Span) -> None:
    report.error("KSP0212", span, "a number outside of 64 bits", "does not fit in an int")


def bad_quantity(report: Report, span: Span, text: str, unit: str) -> None:
    report.error("KSP0213", span, f"`{text}` is not a whole number of {unit}", f"not whole in {unit}")


def recursion(report: Report, span: Span, names: list[str]) -> None:
    way = names if len(names) < 8 else [*names[:3], "…", *names[-3:]]
    report.error("KSP0214", span, f"`{names[0]}` needs itself: {' -> '.join(way)}", "in a circle")


def bad_pattern(report: Report, span: Span, reason: str) -> None:
    report.error("KSP0215", span, f"the pattern is not RE2: {reason}", "not a pattern")


def pattern_not_constant(report: Report, span: Span) -> None:
    report.error("KSP0215", span, "the pattern of `matches` must be a string literal without `${…}`", "not a literal")


def bad_macro(report: Report, span: Span, name: str, reason: str) -> None:
    report.error("KSP0216", span, f"`{name}` {reason}", "", f"write `xs.{name}(x, …)` or `xs.{name}(i, x, …)`")


def unknown_resource(report: Report, span: Span, name: str, near: str, *, as_field: bool = False) -> None:
    """`near` is the resource that was most likely meant; `as_field` if the name stands after a dot."""
    written = f'["{near}"]' if as_field and not near.isidentifier() else near
    label = f"did you mean `{written}`?" if near else "no such resource"
    help = (
        "resources without a domain are cpu, memory, ephemeral-storage, pods, storage, `hugepages-…` and "
        '`attachable-volumes-…`; others have one: `["nvidia.com/gpu"]`'
    )
    report.error("KSP0222", span, f"there is no resource `{name}`", label, help)


def bare_key(report: Report, span: Span, name: str) -> None:
    report.error(
        "KSP0202", span, f"nothing here is called `{name}`", f'did you mean `"{name}"`?',
        "a bare name is a key only where a struct or a resource list is expected",
    )  # fmt: skip


def entry_twice(report: Report, span: Span, name: str) -> None:
    report.error("KSP0217", span, f"`{name}` is given twice", "again here")


def no_type_known(report: Report, span: Span, what: str) -> None:
    help = "name the type, as in `let xs: list<string> = []`"
    report.error("KSP0218", span, f"the type of {what} is not known", "holds nothing", help)


def not_a_collection(report: Report, span: Span, type: Type, use: str, help: str = "") -> None:
    report.error("KSP0219", span, f"{article(show(type))} cannot be {use}", f"this is `{show(type)}`", help)


def relation_outside_view(report: Report, span: Span, name: str) -> None:
    report.error(
        "KSP0220", span, f"`{name}` can only be read by a view", "a relation",
        f"declare a view: `view NAME = count x in {name} where … by …`",
    )  # fmt: skip


def not_a_value(report: Report, span: Span, name: str, what: str) -> None:
    report.error("KSP0221", span, f"`{name}` is {what}, not a value", "not a value")


def not_a_function(report: Report, span: Span, name: str) -> None:
    report.error("KSP0221", span, f"`{name}` is a value, not a function", "not a function")


# ---- rules


def misplaced(report: Report, span: Span, what: str, where: str, help: str = "") -> None:
    report.error("KSP0301", span, f"{what} cannot stand in {where}", "not here", help)


def no_score(report: Report, span: Span, what: str) -> None:
    report.error("KSP0302", span, f"{what} gives no score", "no `score` in it", "add `score EXPR`")


def score_twice(report: Report, span: Span, what: str) -> None:
    report.error("KSP0302", span, f"a second {what}", "there is one already")


def after_score(report: Report, span: Span, what: str) -> None:
    report.error("KSP0303", span, f"{what} after the score", "too late", "move it above `score`")


def normalize_without_score(report: Report, span: Span) -> None:
    report.error("KSP0303", span, "`normalize` before the score", "too early", "`normalize` stands after `score`")


def view_reads_node(report: Report, span: Span) -> None:
    report.error(
        "KSP0304", span, "a view cannot read the node under test", "depends on `node`",
        "group the view `by` a key, and look the node's entry up where the view is read",
    )  # fmt: skip


def view_reads_view(report: Report, span: Span, what: str) -> None:
    report.error("KSP0305", span, f"a view cannot read {what}", "not in a view")


def node_too_early(report: Report, span: Span, keyword: str, root: str) -> None:
    report.error(
        "KSP0306", span, f"`{keyword}` decides before any node is looked at", f"depends on `{root}`",
        f"move the statement out of `{keyword}`",
    )  # fmt: skip


def not_a_relation(report: Report, span: Span, where: str) -> None:
    if span.text.startswith("cluster."):
        help = "other objects of the cluster are gone through with `exists`, `filter` and `map`"
    else:
        help = "" if "feasible" in where else "only a priority knows which nodes are `feasible`"
    report.error("KSP0307", span, f"a view runs over {where}", "not a relation", help)


def bad_view(report: Report, span: Span, reason: str) -> None:
    report.error("KSP0308", span, reason, "not possible")


def score_outside(report: Report, span: Span, label: str) -> None:
    help = "how much a priority counts is said by its weight in a provider; `normalize` maps any scores to 0 to 100"
    report.error("KSP0311", span, "this score is not within 0 to 100", label, help)


def score_of_node(report: Report, span: Span) -> None:
    report.error("KSP0309", span, "`score` of a node is known only in `normalize { … }`", "no score yet")


def not_constant(report: Report, span: Span, what: str) -> None:
    report.error("KSP0310", span, f"{what} must be constant", "not known before a pod is there")


# ---- limits


def too_costly(report: Report, span: Span, name: str, cost: str) -> None:
    report.error("KSP0401", span, f"`{name}` costs {cost}, more than a rule may", "too many nested passes")


def too_many_steps(report: Report, span: Span, name: str, most: int) -> None:
    message = f"`{name}` goes more than {most:,} times through lists that it makes itself"
    report.error("KSP0401", span, message, "too many steps")


def too_large(report: Report, span: Span, name: str, what: str) -> None:
    help = "what it calls and the `let`s that it reads count with it"
    report.error("KSP0402", span, f"`{name}` is too large: {what}", "too large", help)


def may_grow(report: Report, span: Span, what: str) -> None:
    report.error("KSP0403", span, f"this {what} can grow beyond what a rule may make", "too large")


def too_many(report: Report, span: Span, what: str, most: int) -> None:
    report.error("KSP0404", span, f"more than {most:,} {what}", "one too many")


# ---- imports, providers, profiles


def import_missing(report: Report, span: Span, path: str) -> None:
    where = "the shipped library" if path.startswith("ksp:") else "this source"
    report.error("KSP0501", span, f"there is no file `{path}` in {where}", "not found")


def import_cycle(report: Report, span: Span, path: str, *, itself: bool) -> None:
    message = "the file imports itself" if itself else f"`{path}` imports this file already"
    report.error("KSP0502", span, message, "in a circle")


def import_refused(report: Report, span: Span, path: str, reason: str) -> None:
    help = 'import a file below the same root, or of the shipped library: `import "ksp:lib/nodes.ksp"`'
    report.error("KSP0503", span, f"`{path}` cannot be imported: {reason}", "not allowed", help)


def unknown_rule(report: Report, span: Span, kind: str, name: str, known: Iterable[str], is_a: str = "") -> None:
    message = f"`{name}` is {is_a}, not a {kind}" if is_a else f"there is no {kind} `{name}`"
    report.error("KSP0504", span, message, ("" if is_a else report.did_you_mean(name, known)) or f"not a {kind}")


def rule_not_used(report: Report, span: Span, name: str, known: Iterable[str]) -> None:
    report.error(
        "KSP0504", span, f"the provider has no rule `{name}`", report.did_you_mean(name, known) or "not in the provider"
    )


def rule_twice(report: Report, span: Span, name: str, first: Span | None) -> None:
    notes = (Note(first, "it stands here already"),) if first else ()
    report.error("KSP0505", span, f"`{name}` stands in this provider twice", "again here", notes=notes)


def provider_cycle(report: Report, span: Span, name: str) -> None:
    report.error("KSP0506", span, f"the provider `{name}` leads back to itself", "in a circle")


def nothing_to_remove(report: Report, span: Span, name: str, known: Iterable[str]) -> None:
    report.error(
        "KSP0507", span, f"`{name}` is not in the provider", report.did_you_mean(name, known) or "nothing to remove"
    )


def unknown_parameter(report: Report, span: Span, rule: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    listed = f"it has {', '.join(f'`{n}`' for n in names)}" if names else "it has none"
    report.error("KSP0508", span, f"`{rule}` has no parameter `{name}`", report.did_you_mean(name, names) or listed)


def bad_weight(report: Report, span: Span, reason: str) -> None:
    report.error("KSP0509", span, f"a weight {reason}", "not a weight")


def provider_with_arguments(report: Report, span: Span, name: str) -> None:
    message = f"the provider `{name}` takes neither arguments nor a weight"
    report.error("KSP0509", span, message, "its rules keep their own")


def bad_setting(report: Report, span: Span, reason: str, label: str) -> None:
    report.error("KSP0510", span, reason, label)


# ---- tests


def unknown_object(report: Report, span: Span, message: str, label: str) -> None:
    report.error("KSP0601", span, message, label)


def bad_object(report: Report, span: Span, reason: str) -> None:
    report.error("KSP0602", span, reason, "not a valid object")


def wrong_subject(report: Report, span: Span, verdict: str, wanted: str, name: str, kind: str) -> None:
    report.error("KSP0603", span, f"`{verdict}` is said of a {wanted}, and `{name}` is a {kind}", f"not a {wanted}")


def never_said(report: Report, span: Span, name: str, known: Iterable[str]) -> None:
    report.error(
        "KSP0603",
        span,
        f"`{name}` has no such reason",
        report.did_you_mean(span.text.strip("\"'"), known) or "never said",
    )


def bad_expectation(report: Report, span: Span, reason: str, label: str = "cannot be expected") -> None:
    report.error("KSP0603", span, reason, label)
