"""A checked rule becomes something that runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any, NamedTuple

from ksp.check.typed import Expr, Rule
from ksp.compile.code import function as make_function
from ksp.compile.columns.runtime import COLUMN_RUNTIME
from ksp.compile.emit import Emitter
from ksp.compile.inline import inline
from ksp.compile.places import Frame
from ksp.compile.rules import RuleCode
from ksp.compile.runtime import RUNTIME, Denial, Failure
from ksp.compile.steady import steady_at_zero
from ksp.compile.tables import Tables
from ksp.compile.traced import TRACED_RUNTIME
from ksp.compile.zeros import zero_of
from ksp.model.info import NodeInfo, PodInfo

Outcome = Denial | Failure | None
Trace = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """A predicate for the pods of one key, in one state of the views.

    `outcome` is what `prefilter` decided for all nodes; otherwise `check` judges a node, and is None where every node
    is admitted. `column` judges many nodes at once; None if the rule has no such form. `shared` is what both read of
    the views: while it is equal, only nodes that read changed entries of a view can get another answer."""

    outcome: Outcome
    check: Callable[[NodeInfo], Outcome] | None
    column: Callable[[Any], Any] | None
    shared: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class BoundPriority:
    """A priority for the pods of one key, in one state of the views. `outcome` is a failure of `prescore`.

    `constant` is the score of every node, if it cannot vary; `score` gives that of a node, or a failure. Where it
    depends on which other nodes are feasible `score` is None, and `over_feasible` gives all scores. `normalize` brings
    such a list to 0..100, and is None where the scores are there already. `column` and `normal` are the forms of
    `score` (or `over_feasible`) and `normalize` for many nodes at once; None if there are none. `shared` as of a
    predicate."""

    outcome: Failure | None
    constant: int | None
    score: Callable[[NodeInfo], int | Failure] | None
    over_feasible: Callable[[Sequence[NodeInfo]], list[int] | Failure] | None
    column: Callable[[Any], Any] | None
    normalize: Callable[[Sequence[NodeInfo], Sequence[int]], list[int]] | None
    normal: Callable[[Any, Any], Any] | None
    shared: tuple[Any, ...]

    def scores(self, feasible: Sequence[NodeInfo]) -> list[int] | Failure:
        """The score of each feasible node, or a failure."""
        if self.constant is not None:
            return [self.constant] * len(feasible)
        if self.over_feasible is not None:
            return self.over_feasible(feasible)
        assert self.score is not None
        found: list[int] = []
        for node in feasible:
            score = self.score(node)
            if isinstance(score, Failure):
                return score
            found.append(score)
        return found


class Prepared(NamedTuple):
    """What a rule makes of a pod. `key` are the values of all that it reads of the pod: for pods with equal keys `at`
    is as good. `at` asks for the views and gives the fields of a BoundPredicate or BoundPriority."""

    key: tuple[Any, ...]
    at: Callable[[Tables], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate with its arguments."""

    rule: Rule
    run: Callable[[PodInfo, Tables], tuple[tuple[Any, ...], Callable[[Tables], tuple[Any, ...]]]]

    def prepare(self, pod: PodInfo, tables: Tables) -> Prepared:
        """What depends on the pod alone, and on objects that it names."""
        return Prepared(*self.run(pod, tables))

    def bind(self, pod: PodInfo, tables: Tables) -> BoundPredicate:
        """What the rule says of nodes for this pod, in this state of the cluster: good until the state changes."""
        return BoundPredicate(*self.prepare(pod, tables).at(tables))


@dataclass(frozen=True, slots=True)
class Priority:
    """A priority with its arguments. `steady_at_zero` as of ksp.compile.steady."""

    rule: Rule
    run: Callable[[PodInfo, Tables], tuple[tuple[Any, ...], Callable[[Tables], tuple[Any, ...]]]]
    steady_at_zero: bool

    def prepare(self, pod: PodInfo, tables: Tables) -> Prepared:
        """What depends on the pod alone, and on objects that it names."""
        return Prepared(*self.run(pod, tables))

    def bind(self, pod: PodInfo, tables: Tables) -> BoundPriority:
        """What the rule gives to nodes for this pod, in this state of the cluster: good until the state changes."""
        return BoundPriority(*self.prepare(pod, tables).at(tables))


class CompiledRule:
    """A rule's generated function, and the constants that it names. `by_parts` and `scalar_because` are what
    ColumnCode says of its column form."""

    def __init__(self, rule: Rule, *, traced: bool = False) -> None:
        self.rule = rule
        maker = RuleCode(rule, traced=traced)
        self.tree = maker.function()
        self.constants = maker.emitter.constants
        self.sites: Sequence[Expr] = maker.emitter.sites
        self.by_parts = maker.columns.by_parts
        self.scalar_because = maker.columns.scalar_because
        self.steady_at_zero = steady_at_zero(rule)
        maker.close()

    @cached_property
    def source(self) -> str:
        """The function as Python text, to read."""
        return ast.unparse(ast.fix_missing_locations(ast.Module([self.tree], [])))

    @cached_property
    def code(self) -> CodeType:
        return _compiled(self.tree, f"<ksp {self.rule.name}>")

    def instantiate(
        self, arguments: Mapping[str, object] | None = None, trace: Trace | None = None
    ) -> Predicate | Priority:
        """The rule with arguments by parameter, as run-time values (ints, tuples, dicts, structs); what is not given
        has its default. `trace` is for a rule compiled with `traced`: it gets a site, the value there and its operands,
        and returns the value."""
        values = parameter_values(self.rule, arguments or {}).values()
        namespace = _run(self.code, self.constants)
        made = namespace[self.tree.name](*values, *([trace] if trace is not None else []))
        if self.rule.kind == "predicate":
            return Predicate(self.rule, made)
        return Priority(self.rule, made, self.steady_at_zero)


def compile_rule(rule: Rule, *, traced: bool = False) -> CompiledRule:
    """Compile a rule that has passed the checker."""
    return CompiledRule(rule, traced=traced)


def parameter_values(rule: Rule, arguments: Mapping[str, object]) -> dict[str, object]:
    """The run-time values of all parameters, in their order: what is not given has its default."""
    return {parameter.binding.name: _argument(parameter, arguments) for parameter in rule.parameters}


def constant_value(expr: Expr) -> object:
    """The run-time value of a constant expression: a `param`'s default, an argument of a provider."""
    emitter = Emitter()
    frame = Frame(None, emitter.names)
    made = emitter.expr(inline(expr), (frame,))
    function = make_function("constant", [], [*frame.lines, ast.Return(made)])
    return _run(_compiled(function, "<ksp constant>"), emitter.constants)["constant"]()


def _argument(parameter: Any, arguments: Mapping[str, object]) -> object:
    if parameter.binding.name in arguments:
        return arguments[parameter.binding.name]
    return zero_of(parameter.binding.type) if parameter.default is None else constant_value(parameter.default)


def _compiled(tree: ast.FunctionDef, name: str) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Module([tree], [])), name, "exec")


def _run(code: CodeType, constants: Mapping[str, object]) -> dict[str, Any]:
    """Runs generated code: it sees what the runtime and its constants give, and no builtins."""
    namespace: dict[str, Any] = {"__builtins__": {}, **RUNTIME, **COLUMN_RUNTIME, **TRACED_RUNTIME, **constants}
    exec(code, namespace)
    return namespace
