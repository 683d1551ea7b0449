"""Which names an expression sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ksp.check import mistakes
from ksp.check.functions import FUNCTIONS
from ksp.check.report import Report
from ksp.check.schema import NODE, POD
from ksp.check.typed import Binding, Function, Kind, Stage
from ksp.check.types import UNKNOWN, List, Type
from ksp.source.text import Span
from ksp.syntax.recovery import ANY

Named = Binding | Function
ROOTS = ("pod", "node", "cluster", "feasible")
IN_SCOPE = "the name is taken here"
IN_EVERY_RULE = "every rule has this name already"


@dataclass(slots=True)
class Scope:
    """Names, and the scope around them. `scores` if `n.score` is known here; `broken` are names whose declarations have
    mistakes: they are silently Unknown."""

    parent: Scope | None = None
    names: dict[str, Named] = field(default_factory=dict)
    scores: bool = False
    broken: frozenset[str] = frozenset()
    hints: dict[str, str] = field(default_factory=dict)
    local: bool = False

    def find(self, name: str) -> Named | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def forget(self, name: str) -> None:
        """A declaration that has a mistake of its own: what reads the name is silent."""
        self.broken |= {name}

    def is_broken(self, name: str) -> bool:
        return name in self.broken or ANY in self.broken or (self.parent is not None and self.parent.is_broken(name))

    def hint(self, name: str) -> str:
        """Why a name that exists elsewhere is not known here."""
        if name in self.hints:
            return self.hints[name]
        return self.parent.hint(name) if self.parent else ""

    def knows_scores(self) -> bool:
        return self.scores or (self.parent is not None and self.parent.knows_scores())

    def functions(self) -> list[str]:
        """The names of functions that a call can reach."""
        return [name for name in self.all_names() if isinstance(self.find(name), Function)]

    def all_names(self) -> Iterator[str]:
        yield from self.names
        if self.parent is not None:
            yield from self.parent.all_names()

    def clash(self, name: str) -> Named | None:
        """What a new local name would hide: another local one. What stands at the top of a file may be hidden."""
        if name in self.names:
            return self.names[name]
        return self.parent.clash(name) if self.local and self.parent is not None and self.parent.local else None

    def inner(self, *, scores: bool = False) -> Scope:
        return Scope(self, scores=scores, local=True)


def root(name: str) -> Binding:
    """`pod`, `node`, `cluster` or `feasible`."""
    types: dict[str, Type] = {"pod": POD, "node": NODE, "cluster": UNKNOWN, "feasible": List(NODE)}
    stages = {"pod": Stage.POD, "node": Stage.NODE, "cluster": Stage.POD, "feasible": Stage.FEASIBLE}
    return Binding(name, Kind.ROOT, types[name], None, stages[name])


def global_roots() -> dict[str, Named]:
    return {"cluster": root("cluster")}


def rule_roots(kind: str) -> dict[str, Named]:
    names = ("pod", "node", "cluster", "feasible") if kind == "priority" else ("pod", "node", "cluster")
    return {name: root(name) for name in names}


def declare(report: Report, scope: Scope, name: str, span: Span, named: Named) -> None:
    """Gives the name a meaning in the scope. What stands at the top of a file may be hidden, nothing else."""
    clash = scope.clash(name)
    if clash is not None:
        mistakes.declared_twice(report, span, name, clash.span, IN_EVERY_RULE)
        if clash.span is None:
            return  # what reads `pod` or `node` means the rule's own
    elif isinstance(named, Function) and (name in FUNCTIONS or name == "has"):
        mistakes.declared_twice(report, span, name, None, "it is a function of the language")
    elif name in ROOTS and not scope.local:
        mistakes.declared_twice(report, span, name, None, IN_EVERY_RULE)
    scope.names[name] = named
