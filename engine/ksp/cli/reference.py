"""What policies declare, gathered for a reader: rules with what they read and who uses them, functions, providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ksp.check.program import Module
from ksp.check.reasons import denials, failures, fixed_parts
from ksp.check.typed import Binding, Expr, Function, Profile, Provider, Rule
from ksp.cli.footprint import Read, read_of

Place = tuple[str, int]  # of a declaration: the file's name, and where in it
Declared = TypeVar("Declared", Rule, Provider, Profile, Function, Binding)


@dataclass(frozen=True, slots=True)
class Said:
    """A text that a rule can give, with `…` for what varies. `unresolvable` only of reasons."""

    text: str
    unresolvable: bool = False


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule of the files: what it reads, what it can say, and the providers that have it, with its weight there."""

    read: Read
    reasons: tuple[Said, ...]
    errors: tuple[Said, ...]
    used_by: tuple[tuple[Provider, int], ...]

    @property
    def rule(self) -> Rule:
        return self.read.rule


@dataclass(frozen=True, slots=True)
class Reference:
    """All that some files declare, each kind sorted by name."""

    files: tuple[Module, ...]
    predicates: tuple[RuleEntry, ...]
    priorities: tuple[RuleEntry, ...]
    providers: tuple[Provider, ...]
    profiles: tuple[Profile, ...]
    functions: tuple[Function, ...]
    constants: tuple[Binding, ...]


def reference_of(modules: Iterable[Module]) -> Reference:
    """What the files declare, without what they import."""
    files = tuple(sorted(modules, key=lambda module: module.key))
    providers = _sorted(each for file in files for each in file.own_providers())
    entries = [_entry(rule, providers) for rule in _sorted(each for file in files for each in file.own_rules())]
    declared = [each for file in files for each in file.own.values()]
    return Reference(
        files,
        tuple(entry for entry in entries if entry.rule.kind == "predicate"),
        tuple(entry for entry in entries if entry.rule.kind == "priority"),
        tuple(providers),
        tuple(_sorted(each for file in files for each in file.own_profiles())),
        tuple(_sorted(each for each in declared if isinstance(each, Function))),
        tuple(_sorted(each for each in declared if isinstance(each, Binding))),
    )


def place(declared: Rule | Provider | Profile | Function | Binding) -> Place:
    """What tells a declaration from all others, also those of files that were checked apart."""
    span = declared.span
    return (span.source.name, span.start) if span is not None else ("", 0)


def about(module: Module) -> str:
    """The comment at the top of the file, with `//`: what the file is about."""
    lines: list[str] = []
    for line in module.source.text.splitlines():
        text = line.strip()
        if not text.startswith("//") or text.startswith("///"):
            break
        lines.append(text.removeprefix("//").strip())
    return " ".join(lines)


def _sorted(declared: Iterable[Declared]) -> list[Declared]:
    return sorted(declared, key=lambda each: (each.name.casefold(), each.name, place(each)))


def _entry(rule: Rule, providers: Sequence[Provider]) -> RuleEntry:
    reasons = (Said(_text(reason), denial.unresolvable) for denial in denials(rule) for reason in denial.reasons)
    errors = (Said(_text(failure.message)) for failure in failures(rule))
    used_by = tuple((provider, weight) for provider in providers for weight in _weights(rule, provider))
    return RuleEntry(read_of(rule), tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(errors)), used_by)


def _weights(rule: Rule, provider: Provider) -> Iterator[int]:
    for use in (*provider.predicates, *provider.priorities):
        if place(use.rule) == place(rule):
            yield use.weight


def _text(expr: Expr) -> str:
    return "…".join(fixed_parts(expr))
