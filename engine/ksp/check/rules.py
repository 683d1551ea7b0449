"""Statements: what may stand where, and what each means. Makes a typed rule, or function, of a tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ksp.check import limits, mistakes
from ksp.check.expressions import Expressions
from ksp.check.needs import names_in
from ksp.check.placement import ALLOWED, head, where_instead, word
from ksp.check.scope import IN_SCOPE, Scope, declare, rule_roots
from ksp.check.stages import reads_root, stage_of, walk
from ksp.check.typed import (
    Binding,
    Collect,
    Constant,
    Deny,
    Expr,
    Fail,
    For,
    Function,
    Kind,
    Let,
    Normalize,
    Parameter,
    Ref,
    Rule,
    Stage,
    Statement,
    Stop,
)
from ksp.check.types import (
    INT,
    STRING,
    UNKNOWN,
    Unknown,
    is_known,
)
from ksp.check.views import Views
from ksp.syntax import tree

NAMED = (tree.Const, tree.Param, tree.Function, tree.Let, tree.View)
EARLY = {"`prefilter`": "prefilter", "`prescore`": "prescore"}
INSIDE_FOR = {"a predicate": "`for`", "`collect`": "`for`", "a priority": "a priority's `for`"}


@dataclass(slots=True)
class _Parts:
    """What the statements of one rule add up to."""

    parameters: list[Parameter] = field(default_factory=list)
    views: list[Binding] = field(default_factory=list)
    before: list[Statement] = field(default_factory=list)
    score: Expr | None = None
    normalize: Normalize | None = None


class Rules:
    """Checks rules and functions in the scope of their file."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.report = expressions.report
        self.views = Views(expressions)

    # ---- declarations

    def rule(self, node: tree.Rule, file_scope: Scope) -> Rule:
        scope = file_scope.inner()
        scope.names.update(rule_roots(node.kind))
        scope.hints.update({"pod": "", "node": "", "feasible": "only priorities know which nodes are feasible"})
        parts = _Parts()
        body = self._statements(node.body, scope, f"a {node.kind}", parts, top=True)
        if node.kind == "priority" and parts.score is None:
            mistakes.no_score(self.report, node.name_span, f"the priority `{node.name}`")
        return Rule(
            node.kind, node.name, node.implements or node.name, node.name_span, node.doc, tuple(parts.parameters),
            tuple(parts.views), tuple(parts.before), tuple(body), parts.score, parts.normalize,
        )  # fmt: skip

    def function(self, node: tree.Function, scope: Scope) -> Function:
        """The types of a function's head; its body comes later, with `function_body`."""
        parameters: dict[str, Binding] = {}
        for parameter in node.parameters:
            type = self.expressions.type_named(parameter.type, argument=True)
            if parameter.name in parameters or scope.clash(parameter.name):
                mistakes.declared_twice(self.report, parameter.span, parameter.name, None, IN_SCOPE)
            binding = Binding(parameter.name, Kind.ARGUMENT, type, parameter.span, Stage.CONSTANT)
            parameters[parameter.name] = binding
        result = self.expressions.type_named(node.result)
        listed = ", ".join(p.span.text for p in node.parameters)
        signature = f"{node.name}({listed}): {node.result.span.text}"
        nothing = Constant(node.span, UNKNOWN, 0)
        return Function(
            node.name,
            node.name_span,
            tuple(parameters.values()),
            result,
            (),
            nothing,
            Stage.CONSTANT,
            node.doc,
            signature,
        )

    def function_body(self, node: tree.Function, function: Function, outer: Scope) -> None:
        scope = outer.inner()
        scope.names.update({p.name: p for p in function.parameters})
        lets = [self._let(let, scope) for let in node.lets]
        what = f"the result of `{node.name}`"
        function.lets = tuple(lets)
        function.value = self.expressions.wanted(node.value, scope, function.result, what)
        stages = [stage_of(let.value) for let in lets if let.value is not None]
        function.stage = max([stage_of(function.value), *stages])
        self.settled([*(let.value for let in lets if let.value is not None), function.value])
        if not limits.fits(self.report, node.name, node.name_span, function):
            function.lets, function.value = (), Constant(node.span, UNKNOWN, 0)

    def settled(self, exprs: Iterable[Expr]) -> None:
        """Every type in them is known. Where there are mistakes already, they may be why one is not."""
        for expr in exprs if not self.report.failed else ():
            part = next((part for part in walk(expr) if isinstance(part.type, Unknown) and not _is_cluster(part)), None)
            if part is not None:
                mistakes.no_type_known(self.report, part.span, "this")

    def const(self, node: tree.Const, scope: Scope) -> Binding:
        binding = self._valued(node, scope, Kind.CONST)
        if binding.stage > Stage.CONSTANT:
            mistakes.not_constant(self.report, node.value.span, f"`{node.name}`")
            binding.stage = Stage.CONSTANT
        return binding

    # ---- names

    def _valued(self, node: tree.Let | tree.Const, scope: Scope, kind: Kind) -> Binding:
        mark = len(self.report.found)
        if node.type is not None:
            type = self.expressions.type_named(node.type)
            value = self.expressions.wanted(node.value, scope, type, f"`{node.name}`")
        else:
            value = self.expressions.expr(node.value, scope)
            type = value.type
            if not is_known(type) and not self.report.errors_since(mark) and not _is_broken(value):
                mistakes.no_type_known(self.report, node.value.span, f"`{node.name}`")
        if not limits.fits(self.report, node.name, node.name_span, value):
            value = Constant(node.value.span, type, 0)
        return Binding(node.name, kind, type, node.name_span, stage_of(value), value, doc=node.doc)

    def _let(self, node: tree.Let, scope: Scope) -> Binding:
        binding = self._valued(node, scope, Kind.LET)
        declare(self.report, scope, node.name, node.name_span, binding)
        return binding

    # ---- statements

    def _statements(
        self, nodes: tuple[tree.Statement, ...], scope: Scope, where: str, parts: _Parts, *, top: bool = False
    ) -> list[Statement]:
        result: list[Statement] = []
        for name in (node.name for node in nodes if isinstance(node, NAMED)):
            scope.hints.setdefault(name, "it is declared further down: move it above")
        for node in nodes:
            if not self._may_stand(node, where):
                if isinstance(node, NAMED):
                    scope.forget(node.name)
                continue
            if top and parts.score is not None and not isinstance(node, tree.Normalize | tree.Score):
                mistakes.after_score(self.report, head(node), word(node))
            made = self._statement(node, scope, where, parts)
            if made is not None:
                result.append(made)
        return result

    def _may_stand(self, node: tree.Statement, where: str) -> bool:
        kind: type | str = node.keyword if isinstance(node, tree.Block) else type(node)
        if kind in ALLOWED[where]:
            return True
        mistakes.misplaced(self.report, head(node), word(node), where, where_instead(node, where))
        return False

    def _statement(self, node: tree.Statement, scope: Scope, where: str, parts: _Parts) -> Statement | None:
        match node:
            case tree.Const():
                declare(self.report, scope, node.name, node.name_span, self.const(node, scope))
            case tree.Param():
                self._param(node, scope, parts)
            case tree.Function():
                function = self.function(node, scope)
                if node.name in names_in(node):
                    mistakes.recursion(self.report, node.name_span, [node.name, node.name])
                    scope.forget(node.name)
                self.function_body(node, function, scope)
                declare(self.report, scope, node.name, node.name_span, function)
            case tree.Let():
                return Let(node.span, self._let(node, scope))
            case tree.View():
                parts.views.append(self.views.view(node, scope))
            case tree.Deny():
                return self._deny(node, scope, where)
            case tree.Fail():
                message = self._text(node.message, scope, where)
                return Fail(node.span, message, self._condition(node.condition, scope, where))
            case tree.Stop():
                return Stop(node.span, self._condition(node.condition, scope, where))
            case tree.For():
                return self._for(node, scope, where, parts)
            case tree.Block():
                return self._block(node, scope, parts)
            case tree.Score():
                self._score(node, scope, parts)
            case tree.Normalize():
                self._normalize(node, scope, parts)
        return None

    def _condition(self, node: tree.Expr, scope: Scope, where: str) -> Expr:
        condition = self.expressions.condition(node, scope)
        self._not_too_early(condition, where)
        return condition

    def _text(self, node: tree.Expr, scope: Scope, where: str) -> Expr:
        text = self.expressions.wanted(node, scope, STRING)
        self._not_too_early(text, where)
        return text

    def _not_too_early(self, value: Expr, where: str) -> bool:
        """What `prefilter` and `prescore` read is known before any node is looked at."""
        if where not in EARLY or stage_of(value) <= Stage.CLUSTER:
            return True
        root = "node" if stage_of(value) == Stage.NODE else "feasible"
        named = reads_root(value, root)
        mistakes.node_too_early(self.report, named.span if named else value.span, EARLY[where], root)
        return False

    def _deny(self, node: tree.Deny, scope: Scope, where: str) -> Deny:
        reasons = tuple(self._text(reason, scope, where) for reason in node.reasons)
        condition = self._condition(node.condition, scope, where)
        return Deny(node.span, node.unresolvable, reasons, condition)

    def _for(self, node: tree.For, scope: Scope, where: str, parts: _Parts) -> For:
        range_ = self.expressions.expr(node.range, scope)
        in_time = self._not_too_early(range_, where)
        names = list(zip(node.names, node.name_spans, strict=True))
        variables = self.expressions.calls.variables(names, range_, scope)
        for variable in variables:
            variable.stage = variable.stage if in_time else Stage.POD
        inner = scope.inner()
        inner.names.update({v.name: v for v in variables})
        inside = INSIDE_FOR.get(where, where)
        return For(node.span, variables, range_, tuple(self._statements(node.body, inner, inside, parts)))

    def _block(self, node: tree.Block, scope: Scope, parts: _Parts) -> Statement | None:
        body = self._statements(node.body, scope.inner(), f"`{node.keyword}`", parts)
        if node.keyword == "collect":
            return Collect(node.span, tuple(body))
        parts.before.extend(body)
        return None

    def _param(self, node: tree.Param, scope: Scope, parts: _Parts) -> None:
        type = self.expressions.type_named(node.type, argument=True)
        default = None
        if node.default is not None:
            default = self.expressions.wanted(node.default, scope, type, f"`{node.name}`")
            if stage_of(default) > Stage.CONSTANT:
                mistakes.not_constant(self.report, node.default.span, "the default of a `param`")
                default = None
            elif not limits.fits(self.report, node.name, node.name_span, default):
                default = None
        binding = Binding(node.name, Kind.PARAM, type, node.name_span, Stage.CONSTANT)
        declare(self.report, scope, node.name, node.name_span, binding)
        parts.parameters.append(Parameter(binding, default, node.doc))

    # ---- scores

    def _score(self, node: tree.Score, scope: Scope, parts: _Parts) -> None:
        if parts.score is not None:
            mistakes.score_twice(self.report, head(node), "`score`")
        parts.score = self.expressions.wanted(node.value, scope, INT, "a score")

    def _normalize(self, node: tree.Normalize, scope: Scope, parts: _Parts) -> None:
        if parts.normalize is not None:
            mistakes.score_twice(self.report, node.keyword_span, "`normalize`")
        if parts.score is None:
            mistakes.normalize_without_score(self.report, node.keyword_span)
        if node.body is None:
            parts.normalize = Normalize("reversed" if node.reversed else "largest")
            return
        inside = _Parts(views=parts.views)
        body = self._statements(node.body, scope.inner(scores=True), "`normalize`", inside, top=True)
        if inside.score is None:
            mistakes.no_score(self.report, node.keyword_span, "`normalize`")
        parts.normalize = Normalize("block", tuple(body), inside.score)


def _is_cluster(expr: Expr) -> bool:
    return isinstance(expr, Ref) and expr.binding.kind is Kind.ROOT


def _is_broken(value: Expr) -> bool:
    """A mistake elsewhere is why its type is not known."""
    return any(
        isinstance(part.type, Unknown)
        and (isinstance(part, Constant) or (isinstance(part, Ref) and part.binding.kind is not Kind.VARIABLE))
        for part in walk(value)
    )
