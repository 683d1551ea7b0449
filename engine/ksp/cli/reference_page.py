"""A reference as Markdown: the same policies give the same page, byte for byte."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path, PurePath
from urllib.parse import quote

from ksp.check.program import Module
from ksp.check.typed import Binding, Expr, Function, Profile, Provider, Rule, RuleUse
from ksp.check.types import show
from ksp.cli.reference import Place, Reference, RuleEntry, Said, about, place
from ksp.compile.footprint import ViewReads
from ksp.source.origin import SHIPPED

Named = Rule | Provider | Profile | Function | Binding
HEAD = """\
# Policy reference

Made by `ksp doc` from the policies, whose comments (`///`) it repeats: edit them, not this page.
"""


def page(reference: Reference, folder: Path) -> str:
    """The page for a file that lies in the folder: links to the policies start there."""
    return _Page(reference, folder).text()


class _Page:
    """Sections with headings; every name leads to the heading of its declaration."""

    def __init__(self, reference: Reference, folder: Path) -> None:
        self.reference = reference
        self.folder = folder
        self.sections: dict[str, Sequence[Named]] = {
            "Providers": reference.providers,
            "Profiles": reference.profiles,
            "Predicates": [entry.rule for entry in reference.predicates],
            "Priorities": [entry.rule for entry in reference.priorities],
            "Functions": reference.functions,
            "Constants": reference.constants,
        }
        self.anchors: dict[Place, str] = {}
        self.section_anchors: dict[str, str] = {}
        self._give_anchors()

    def _give_anchors(self) -> None:
        """As GitHub gives them, in the order of the headings: one that is there already gets a number."""
        taken: dict[str, int] = {}
        for heading in ("Policy reference", "Contents", "Files"):
            self.section_anchors[heading] = _anchor(heading, taken)
        for title, members in self.sections.items():
            if members:
                self.section_anchors[title] = _anchor(title, taken)
            for member in members:
                self.anchors[place(member)] = _anchor(member.name, taken)

    def text(self) -> str:
        blocks = [HEAD, *self._contents(), *self._files()]
        bodies = {
            "Providers": map(self._provider, self.reference.providers),
            "Profiles": map(self._profile, self.reference.profiles),
            "Predicates": map(self._rule, self.reference.predicates),
            "Priorities": map(self._rule, self.reference.priorities),
            "Functions": map(self._function, self.reference.functions),
            "Constants": map(self._constant, self.reference.constants),
        }
        for title, members in bodies.items():
            if self.sections[title]:
                blocks.append(f"## {title}")
                blocks += self._overview(self.sections[title])
                blocks += ("\n\n".join(member) for member in members)
        return "\n\n".join(block.strip("\n") for block in blocks) + "\n"

    # ---- what stands before the declarations

    def _contents(self) -> Iterator[str]:
        yield "## Contents"
        lines = [f"- [Files](#{self.section_anchors['Files']})"]
        for title, members in self.sections.items():
            if members:
                names = ", ".join(self._link(member) for member in members)
                lines.append(f"- [{title}](#{self.section_anchors[title]}): {names}")
        yield "\n".join(lines)

    def _files(self) -> Iterator[str]:
        yield "## Files"
        rows = ["| file | about |", "| --- | --- |"]
        rows += [f"| {self._file(file.source.name, file)} | {_cell(about(file))} |" for file in self.reference.files]
        yield "\n".join(rows)

    def _overview(self, members: Sequence[Named]) -> Iterator[str]:
        """Of rules a table, with the first paragraph of what each says of itself."""
        rules = [member for member in members if isinstance(member, Rule)]
        if rules:
            rows = [f"| {self._link(rule)} | {_code(rule.plugin)} | {_cell(_summary(rule.doc))} |" for rule in rules]
            yield "\n".join([f"| {rules[0].kind} | plugin | |", "| --- | --- | --- |", *rows])

    # ---- declarations

    def _provider(self, provider: Provider) -> Iterator[str]:
        yield f"### {provider.name}"
        parts = ", ".join(self._link(part) for part in provider.parts)
        yield f"Provider, in {self._file_of(provider)}{f'; made of {parts}' if parts else ''}."
        yield from _doc(provider.doc)
        if provider.predicates:
            yield "Predicates, in the order in which they are asked:"
            yield "\n".join(f"{i}. {self._use(use)}" for i, use in enumerate(provider.predicates, 1))
        if provider.priorities:
            rows = [f"| {self._use(use)} | {use.weight} |" for use in provider.priorities]
            yield "\n".join(["| priority | weight |", "| --- | --- |", *rows])

    def _use(self, use: RuleUse) -> str:
        if not use.arguments:
            return self._link(use.rule)
        arguments = ", ".join(f"{name}: {_source(value)}" for name, value in use.arguments)
        return f"{self._link(use.rule)} with {_code(arguments)}"

    def _profile(self, profile: Profile) -> Iterator[str]:
        yield f"### {profile.name}"
        yield f"Profile, in {self._file_of(profile)}; uses {self._link(profile.provider)}."
        yield from _doc(profile.doc)
        settings = [f"{rule}.{name} = {_source(value)}" for rule, name, value in profile.arguments]
        if profile.percentage is not None:
            settings.append(f"percentageOfNodesToScore = {profile.percentage}")
        if not profile.preempts:
            settings.append("preemption = false")
        if profile.checks_all:
            settings.append("alwaysCheckAllPredicates = true")
        yield from _listed(_code(setting) for setting in settings)

    def _rule(self, entry: RuleEntry) -> Iterator[str]:
        rule = entry.rule
        yield f"### {rule.name}"
        plugin = f"; implements the plugin {_code(rule.plugin)}" if rule.plugin != rule.name else ""
        yield f"{rule.kind.capitalize()}, in {self._file_of(rule)}{plugin}."
        yield from _doc(rule.doc)
        if rule.parameters:
            yield "\n".join(_parameters(rule))
        yield from _listed(self._facts(entry))

    def _facts(self, entry: RuleEntry) -> Iterator[str]:
        """What follows from the rule's text."""
        yield from _fact("reasons", map(_said, entry.reasons))
        yield from _fact("errors", map(_said, entry.errors))
        found = entry.read.footprint
        yield from _fact("reads of the pod", map(_code, found.pod))
        yield from _fact("reads of a node", map(_code, found.node))
        for view in found.views:
            yield from _fact(f"view {_code(view.name)} of {view.relation}", _rows(view))
        yield from _fact("other objects", map(_code, found.objects))
        yield from _fact("denied pods are tried again after", _events(entry.read.events))
        yield from _fact("cost", [_code(entry.read.cost)])
        uses = entry.used_by
        weighted = (f"{self._link(p)} (weight {weight})" for p, weight in uses)
        yield from _fact("in", weighted if entry.rule.kind == "priority" else (self._link(p) for p, _ in uses))

    def _function(self, function: Function) -> Iterator[str]:
        yield f"### {function.name}"
        yield f"Function, in {self._file_of(function)}."
        yield f"```ksp\nfn {function.signature}\n```"
        yield from _doc(function.doc)

    def _constant(self, constant: Binding) -> Iterator[str]:
        yield f"### {constant.name}"
        yield f"Constant of the type {_code(show(constant.type))}, in {self._file_of(constant)}."
        yield from _doc(constant.doc)
        if constant.value is not None:
            yield f"```ksp\nconst {constant.name} = {constant.value.span.text}\n```"

    # ---- links

    def _link(self, declared: Named) -> str:
        """To its heading; what other files declare has none."""
        anchor = self.anchors.get(place(declared))
        return f"[{declared.name}](#{anchor})" if anchor is not None else _code(declared.name)

    def _file_of(self, declared: Named) -> str:
        name = place(declared)[0]
        return self._file(name, next((file for file in self.reference.files if file.source.name == name), None))

    def _file(self, name: str, file: Module | None) -> str:
        """A file by its place below the folder that was given, with a link if it is one that readers can open."""
        shown = _code(file.key if file is not None else name)
        if name.startswith(SHIPPED):
            return shown
        return f"[{shown}]({quote(PurePath(os.path.relpath(name, self.folder)).as_posix())})"


def _anchor(heading: str, taken: dict[str, int]) -> str:
    base = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    count = taken.get(base, -1) + 1
    taken[base] = count
    return f"{base}-{count}" if count else base


def _doc(text: str) -> Iterator[str]:
    if text.strip():
        yield text.strip("\n")


def _summary(text: str) -> str:
    return text.strip().partition("\n\n")[0]


def _parameters(rule: Rule) -> Iterator[str]:
    yield "| parameter | type | default | |"
    yield "| --- | --- | --- | --- |"
    for parameter in rule.parameters:
        default = _code(_source(parameter.default)) if parameter.default is not None else "zero"
        cells = (_code(parameter.binding.name), _code(show(parameter.binding.type)), default, parameter.doc)
        yield f"| {' | '.join(map(_cell, cells))} |"


def _listed(items: Iterable[str]) -> Iterator[str]:
    lines = "\n".join(f"- {item}" for item in items)
    if lines:
        yield lines


def _fact(label: str, items: Iterable[str]) -> Iterator[str]:
    listed = ", ".join(items)
    if listed:
        yield f"**{label}:** {listed}"


def _rows(view: ViewReads) -> Iterable[str]:
    return map(_code, view.rows) if view.rows else ["only which rows there are"]


def _events(names: Sequence[str]) -> Iterator[str]:
    """Those of one kind of object together: `ServiceAdd`/`Delete`/`Update`."""
    for kind, of_kind in groupby(sorted(names, key=_kind_first), lambda name: _kind_first(name)[0]):
        first, *others = of_kind
        yield "/".join([_code(first), *(_code(name.removeprefix(kind)) for name in others)])


def _kind_first(event: str) -> tuple[str, str]:
    kind = re.sub("(Add|Delete|Update)$", "", event)
    return kind, event


def _said(said: Said) -> str:
    return f"{_code(said.text)} (unresolvable)" if said.unresolvable else _code(said.text)


def _source(expr: Expr) -> str:
    """The text of an expression in one line."""
    return " ".join(expr.span.text.split())


def _code(text: str) -> str:
    """As code, whatever backticks are in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"{fence}{text}{fence}"


def _cell(text: str) -> str:
    """In a table a cell is one line, and `|` ends it."""
    return " ".join(text.split()).replace("|", r"\|")
