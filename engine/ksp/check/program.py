"""A file and all that it imports: names across files, and the order in which things are checked.

`Checker` checks files of one origin, each once, however many others import it. A file sees what it declares and what its
imports declare, and theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ksp.check import limits, mistakes
from ksp.check.advice import advise
from ksp.check.expressions import Expressions
from ksp.check.objects import Tests
from ksp.check.providers import Providers
from ksp.check.report import Report
from ksp.check.rules import Rules
from ksp.check.scope import Scope, global_roots
from ksp.check.typed import Binding, Function, Profile, Provider, Rule, Test
from ksp.source.diagnostic import Diagnostic
from ksp.source.origin import SHIPPED, Origin, resolve, shipped
from ksp.source.text import Source, Span
from ksp.syntax import tree
from ksp.syntax.parser import parse
from ksp.syntax.walk import called_names

Declared = Binding | Function | Rule | Provider | Profile


@dataclass(eq=False, slots=True)
class Module:
    """A checked file. `own` is what it declares, `seen` that and what its imports declare."""

    key: str
    source: Source
    own: dict[str, Declared] = field(default_factory=dict)
    seen: dict[str, Declared] = field(default_factory=dict)
    tests: list[Test] = field(default_factory=list)
    broken: frozenset[str] = frozenset()
    imports: dict[str, Module] = field(default_factory=dict)

    def rules(self) -> dict[str, Rule]:
        return {name: d for name, d in self.seen.items() if isinstance(d, Rule)}

    def providers(self) -> dict[str, Provider]:
        return {name: d for name, d in self.seen.items() if isinstance(d, Provider)}

    def profiles(self) -> list[Profile]:
        return [d for d in self.seen.values() if isinstance(d, Profile)]

    def own_rules(self) -> list[Rule]:
        return [d for d in self.own.values() if isinstance(d, Rule)]


class Checker:
    """Checks files of an origin and of the shipped library; the diagnostics of all of them are in `report`."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.library = shipped()
        self.report = Report()
        self.modules: dict[str, Module | None] = {}
        self._open: list[str] = []

    def check(self, key: str) -> Module | None:
        """A file by its path in the origin (or `ksp:` and its path in the library); None if it cannot be read."""
        if key not in self.modules:
            self._open.append(key)
            self.modules[key] = self._load(key)
            self._open.pop()
        return self.modules[key]

    def read(self, key: str) -> Source | Diagnostic | None:
        if key.startswith(SHIPPED):
            return self.library.read(key.removeprefix(SHIPPED))
        return self.origin.read(key)

    def _load(self, key: str) -> Module | None:
        source = self.read(key)
        if source is None:
            return None
        if isinstance(source, Diagnostic):
            self.report.add(source)
            return None
        parsed = parse(source)
        for diagnostic in parsed.diagnostics:
            self.report.add(diagnostic)
        module = Module(key, source, broken=parsed.broken)
        self._import(parsed.file, module)
        _Declarations(self.report, module).all(parsed.file)
        return module

    # ---- imports

    def _import(self, file: tree.File, module: Module) -> None:
        for declaration in file.declarations:
            if isinstance(declaration, tree.Import):
                self._import_one(declaration, module)

    def _import_one(self, node: tree.Import, module: Module) -> None:
        key, refusal = resolve(node.path, module.key)
        if refusal:
            mistakes.import_refused(self.report, node.path_span, node.path, refusal)
        elif key in self._open:
            mistakes.import_cycle(self.report, node.path_span, node.path)
        elif len(self.modules) >= limits.FILES and key not in self.modules:
            mistakes.too_many(self.report, node.path_span, "files", limits.FILES)
        else:
            imported = self.check(key)
            if imported is None:
                module.broken |= {"*"}
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
        why = "a `fn` at the top of a file sees its arguments and `cluster`: pass it what it needs"
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
        self.module.tests = [tests.test(n) for n in file.declarations if isinstance(n, tree.Test)]

    def _declare(self, name: str, span: Span, declared: Declared) -> None:
        known = self.module.seen.get(name)
        if known is not None:
            mistakes.declared_twice(self.report, span, name, known.span)
            return
        self.module.own[name] = self.module.seen[name] = declared

    def _rule(self, node: tree.Rule) -> None:
        before = len(self.report.found)
        rule = self.rules.rule(node, self.scope)
        if not any(d.severity.value == "error" for d in self.report.found[before:]):
            limits.check_rule(self.report, rule)
            advise(self.report, rule, node, self.expressions.used)
        self._declare(node.name, node.name_span, rule)

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
        before = len(self.report.found)
        if isinstance(node, tree.Const):
            declared: Binding | Function = self.rules.const(node, self.scope)
        else:
            declared = self.rules.function(node, Scope())
            self.rules.function_body(node, declared, self.scope)
            if len(self.report.found) == before:
                limits.check_function(self.report, declared)
        self.rules.declare(self.scope, node.name, node.name_span, declared)
        self._declare(node.name, node.name_span, declared)

    def _ordered(self, nodes: dict[str, tree.Function | tree.Const]) -> Iterator[str]:
        """Each after those that it names; what names itself in a circle is reported and left as it comes."""
        done: set[str] = set()
        for start in nodes:
            path: list[str] = []
            pending = [(start, iter(self._needs(nodes, start)))] if start not in done else []
            if pending:
                path.append(start)
            while pending:
                name, needs = pending[-1]
                needed = next(needs, None)
                if needed is None:
                    pending.pop()
                    path.pop()
                    done.add(name)
                    yield name
                elif needed in path:
                    circle = [*path[path.index(needed) :], needed]
                    mistakes.recursion(self.report, nodes[needed].name_span, circle)
                    self.scope.broken |= {needed}
                elif needed not in done:
                    pending.append((needed, iter(self._needs(nodes, needed))))
                    path.append(needed)

    def _needs(self, nodes: dict[str, tree.Function | tree.Const], name: str) -> list[str]:
        node = nodes[name]
        exprs = [node.value] if isinstance(node, tree.Const) else [node.value, *(let.value for let in node.lets)]
        return [called for expr in exprs for called in called_names(expr) if called in nodes]
