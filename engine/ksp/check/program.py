"""A file and all that it imports: names across files, and the order in which things are checked.

`Checker` checks files of one origin, each once, however many others import it. A file sees what it declares and what
its imports declare, and theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ksp.check import limits, mistakes
from ksp.check.advice import advise
from ksp.check.bind_timeout import check_default
from ksp.check.expressions import Expressions
from ksp.check.needs import names_in
from ksp.check.objects import Tests
from ksp.check.parts import expressions
from ksp.check.providers import Providers
from ksp.check.quoting import check_texts
from ksp.check.report import Report
from ksp.check.rules import Rules
from ksp.check.scope import Scope, declare, global_roots
from ksp.check.score_bounds import check_scores
from ksp.check.typed import Binding, Function, Profile, Provider, Rule, Test
from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.origin import SHIPPED, Origin, resolve, shipped
from ksp.source.text import Source, Span
from ksp.syntax import tree
from ksp.syntax.parser import parse
from ksp.syntax.recovery import ANY

Declared = Binding | Function | Rule | Provider | Profile


@dataclass(eq=False, slots=True)
class Module:
    """A checked file. `own` is what it declares, `seen` that and what its imports declare; `size` counts the
    expressions of its own functions and rules; `failed` if there is an error in it."""

    key: str
    source: Source
    own: dict[str, Declared] = field(default_factory=dict)
    seen: dict[str, Declared] = field(default_factory=dict)
    tests: list[Test] = field(default_factory=list)
    broken: frozenset[str] = frozenset()
    imports: dict[str, Module] = field(default_factory=dict)
    size: int = 0
    failed: bool = False

    def rules(self) -> dict[str, Rule]:
        return {name: d for name, d in self.seen.items() if isinstance(d, Rule)}

    def providers(self) -> dict[str, Provider]:
        return {name: d for name, d in self.seen.items() if isinstance(d, Provider)}

    def profiles(self) -> list[Profile]:
        return [d for d in self.seen.values() if isinstance(d, Profile)]

    def own_rules(self) -> list[Rule]:
        return [d for d in self.own.values() if isinstance(d, Rule)]

    def own_providers(self) -> list[Provider]:
        return [d for d in self.own.values() if isinstance(d, Provider)]

    def own_profiles(self) -> list[Profile]:
        return [d for d in self.own.values() if isinstance(d, Profile)]


@dataclass(slots=True)
class _Open:
    """A parsed file on its way: `imports` are those still to come, the next one last."""

    module: Module
    file: tree.File
    imports: list[tree.Import]


class Checker:
    """Checks files of an origin and of the shipped library; the diagnostics of all of them are in `report`."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.shipped = shipped()
        self.report = Report()
        self.modules: dict[str, Module | None] = {}
        limits.forget()

    def check(self, key: str) -> Module | None:
        """A file by its path in the origin (or `ksp:` and its path in the library); None if it cannot be read.

        What it imports is checked before it. However long a chain of imports is, nothing here recurses.
        """
        if key in self.modules:
            return self.modules[key]
        opened = {key: self._open(key)}
        pending = [key]
        while pending:
            current = opened[pending[-1]]
            needed = self._next_import(current, opened) if current is not None else None
            if needed is None:
                self.modules[pending.pop()] = self._closed(current)
            elif needed not in opened:
                opened[needed] = self._open(needed)
                pending.append(needed)
        return self.modules[key]

    def read(self, key: str) -> Source | Diagnostic | None:
        if key.startswith(SHIPPED):
            return self.shipped.read(key.removeprefix(SHIPPED))
        return self.origin.read(key)

    # ---- one file

    def _open(self, key: str) -> _Open | None:
        """The file, parsed; its imports are still to come."""
        source = self.read(key)
        if source is None:
            return None
        if isinstance(source, Diagnostic):
            self.report.add(source)
            return None
        parsed = parse(source)
        for diagnostic in parsed.diagnostics:
            self.report.add(diagnostic)
        imports = [node for node in parsed.file.declarations if isinstance(node, tree.Import)]
        return _Open(Module(key, source, broken=parsed.broken), parsed.file, imports[::-1])

    def _closed(self, opened: _Open | None) -> Module | None:
        """The file, checked: all that it imports is there."""
        if opened is None:
            return None
        module = opened.module
        _Declarations(self.report, module).all(opened.file)
        module.failed = any(d.severity is Severity.ERROR and d.span.source is module.source for d in self.report.found)
        return module

    # ---- imports

    def _next_import(self, opened: _Open, others: dict[str, _Open | None]) -> str | None:
        """Takes in what is checked already; the first file that is not; None after the last."""
        while opened.imports:
            node = opened.imports[-1]
            key, refusal = resolve(node.path, opened.module.key)
            if refusal:
                mistakes.import_refused(self.report, node.path_span, node.path, refusal)
            elif key in self.modules:
                self._take_in(node, key, opened.module)
            elif key in others:
                mistakes.import_cycle(self.report, node.path_span, node.path, itself=key == opened.module.key)
            elif len(others) >= limits.FILES:
                mistakes.too_many(self.report, node.path_span, "files", limits.FILES)
            else:
                return key
            if refusal or key not in self.modules:
                opened.module.broken |= {ANY}
            opened.imports.pop()
        return None

    def _take_in(self, node: tree.Import, key: str, module: Module) -> None:
        imported = self.modules[key]
        if imported is None:
            module.broken |= {ANY}
            if self.read(key) is None:
                mistakes.import_missing(self.report, node.path_span, node.path)
            return
        module.imports[key] = imported
        module.broken |= imported.broken
        for name, declared in imported.seen.items():
            known = module.seen.setdefault(name, declared)
            if known is not declared:
                mistakes.declared_twice(self.report, node.path_span, name, known.span)


class _Declarations:
    """The declarations of one file."""

    def __init__(self, report: Report, module: Module) -> None:
        self.report = report
        self.module = module
        self.expressions = Expressions(report)
        self.rules = Rules(self.expressions)
        values = {n: d for n, d in module.seen.items() if isinstance(d, Binding | Function)}
        self.scope = Scope(names={**global_roots(), **values}, broken=module.broken)
        why = "it is known in rules only; a `fn` at the top of a file takes it as an argument"
        self.scope.hints.update(dict.fromkeys(("pod", "node", "feasible"), why))

    def all(self, file: tree.File) -> None:
        self._values(file)
        for node in file.declarations:
            if isinstance(node, tree.Rule):
                self._rule(node)
        providers = Providers(self.report, self.expressions, self.scope, self.module)
        for provider in providers.all([n for n in file.declarations if isinstance(n, tree.Provider)]):
            self._declare(provider.name, provider.span, provider)
        for profile in providers.profiles([n for n in file.declarations if isinstance(n, tree.Profile)]):
            self._declare(f'"{profile.name}"', profile.span, profile)
        tests = Tests(self.report, self.module.rules(), self.module.providers(), self.module.broken)
        for node in file.declarations:
            if isinstance(node, tree.Test):
                self._unique(node)
                self.module.tests.append(tests.test(node))

    def _unique(self, node: tree.Test) -> None:
        first = next((test for test in self.module.tests if test.name == node.name), None)
        if first is not None:
            mistakes.declared_twice(self.report, node.name_span, node.name, first.span)

    def _declare(self, name: str, span: Span, declared: Declared) -> None:
        known = self.module.seen.get(name)
        replaces = isinstance(declared, Profile) and name not in self.module.own
        if known is not None and not replaces:
            mistakes.declared_twice(self.report, span, name, known.span)
            return
        self.module.own[name] = self.module.seen[name] = declared

    def _rule(self, node: tree.Rule) -> None:
        mark = len(self.report.found)
        rule = self.rules.rule(node, self.scope)
        self.rules.settled(expressions(rule))
        check_default(self.report, rule)
        if not self.report.errors_since(mark) and self.module.size <= limits.TOTAL:
            self._count(limits.check_rule(self.report, rule), node)
            if not self.report.errors_since(mark):
                check_scores(self.report, rule)
            if not self.report.failed:
                check_texts(self.report, rule)
                advise(self.report, rule, self.expressions.used)
        self._declare(node.name, node.name_span, rule)

    def _count(self, size: int, node: tree.Rule | tree.Function) -> None:
        """Sees to it that all declarations together do not take longer than a reader would wait."""
        before = self.module.size
        self.module.size += size
        if before <= limits.TOTAL < self.module.size:
            mistakes.too_many(self.report, node.name_span, "expressions in all declarations of a file", limits.TOTAL)

    # ---- functions and constants: in the order in which they need each other

    def _values(self, file: tree.File) -> None:
        nodes: dict[str, tree.Function | tree.Const] = {}
        for node in file.declarations:
            if isinstance(node, tree.Function | tree.Const):
                if node.name in nodes:
                    mistakes.declared_twice(self.report, node.name_span, node.name, nodes[node.name].name_span)
                nodes.setdefault(node.name, node)
        for name in self._ordered(nodes):
            self._value(nodes[name])

    def _value(self, node: tree.Function | tree.Const) -> None:
        mark = len(self.report.found)
        if isinstance(node, tree.Const):
            declared: Binding | Function = self.rules.const(node, self.scope)
        else:
            declared = self.rules.function(node, Scope())
            self.rules.function_body(node, declared, self.scope)
            if not self.report.errors_since(mark) and self.module.size <= limits.TOTAL:
                self._count(limits.check_function(self.report, declared), node)
        declare(self.report, self.scope, node.name, node.name_span, declared)
        self._declare(node.name, node.name_span, declared)

    def _ordered(self, nodes: dict[str, tree.Function | tree.Const]) -> Iterator[str]:
        """Each after those that it names; what names itself in a circle is reported and left as it comes."""
        done: set[str] = set()
        for start in nodes:
            path: dict[str, Iterator[str]] = {}
            if start not in done:
                path[start] = _needs(nodes, start)
            while path:
                name = next(reversed(path))
                needed = next(path[name], None)
                if needed is None:
                    del path[name]
                    done.add(name)
                    yield name
                elif needed in path:
                    circle = list(path)
                    mistakes.recursion(self.report, nodes[needed].name_span, [*circle[circle.index(needed) :], needed])
                    self.scope.forget(needed)
                elif needed not in done:
                    path[needed] = _needs(nodes, needed)


def _needs(nodes: dict[str, tree.Function | tree.Const], name: str) -> Iterator[str]:
    """What a declaration names of the others, in the order of their declaration."""
    named = names_in(nodes[name])
    return (other for other in nodes if other in named)
