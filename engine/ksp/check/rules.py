"""Statements: what may stand where, and what each means. Makes a typed rule, or function, of a tree."""

from __future__ import annotations

from dataclasses import dataclass, field

from ksp.check import limits, mistakes, schema
from ksp.check.expressions import IN_EVERY_RULE, Expressions
from ksp.check.functions import FUNCTIONS, MACROS
from ksp.check.scope import Named, Scope, rule_roots
from ksp.check.stages import reads_root, references, stage_of, walk
from ksp.check.typed import (
    Binding,
    Collect,
    Constant,
    Deny,
    Expr,
    Fail,
    For,
    Function,
    Invoke,
    Join,
    Kind,
    Let,
    NodeScore,
    Normalize,
    Parameter,
    Rule,
    Stage,
    Statement,
    Stop,
    View,
)
from ksp.check.types import (
    INT,
    STRING,
    UNKNOWN,
    Bool,
    Double,
    Int,
    List,
    Map,
    String,
    Type,
    Unknown,
    is_known,
)
from ksp.source.text import Span
from ksp.syntax import tree
from ksp.syntax.walk import children

WORDS: dict[type, str] = {
    tree.Const: "`const`", tree.Param: "`param`", tree.Function: "`fn`", tree.Let: "`let`", tree.View: "`view`",
    tree.Deny: "`deny`", tree.Fail: "`fail`", tree.Stop: "`stop`", tree.For: "`for`", tree.Score: "`score`",
    tree.Normalize: "`normalize`",
}  # fmt: skip
ROOTS = frozenset({"pod", "node", "cluster", "feasible"})
DECLARING = frozenset({tree.Const, tree.Let, tree.Function})
ALLOWED: dict[str, frozenset[type | str]] = {
    "a predicate": DECLARING
    | {tree.Param, tree.View, tree.Deny, tree.Fail, tree.Stop, tree.For, "collect", "prefilter"},
    "`prefilter`": DECLARING | {tree.Deny, tree.Fail, tree.Stop, tree.For, "collect"},
    "`collect`": DECLARING | {tree.Deny, tree.Fail, tree.Stop, tree.For},
    "`for`": DECLARING | {tree.Deny, tree.Fail, tree.Stop, tree.For},
    "a priority": DECLARING | {tree.Param, tree.View, tree.Fail, tree.For, tree.Score, tree.Normalize, "prescore"},
    "a priority's `for`": DECLARING | {tree.Fail, tree.For},
    "`prescore`": DECLARING | {tree.Fail, tree.For},
    "`normalize`": DECLARING | {tree.View, tree.Score},
}


NAMED = (tree.Const, tree.Param, tree.Function, tree.Let, tree.View)
EARLY = {"`prefilter`": "prefilter", "`prescore`": "prescore"}
INSIDE_FOR = {"a predicate": "`for`", "`collect`": "`for`", "a priority": "a priority's `for`"}
IN_SCOPE = "the name is taken here"


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
        if not limits.fits(self.report, node.name, node.name_span, function):
            function.lets, function.value = (), Constant(node.span, UNKNOWN, 0)

    def const(self, node: tree.Const, scope: Scope) -> Binding:
        binding = self._valued(node, scope, Kind.CONST)
        if binding.stage > Stage.CONSTANT:
            mistakes.not_constant(self.report, node.value.span, f"`{node.name}`")
            binding.stage = Stage.CONSTANT
        return binding

    # ---- names

    def declare(self, scope: Scope, name: str, span: Span, named: Named) -> None:
        clash = scope.clash(name)
        if clash is not None:
            mistakes.declared_twice(self.report, span, name, clash.span, IN_EVERY_RULE)
        elif isinstance(named, Function) and (name in FUNCTIONS or name == "has"):
            mistakes.declared_twice(self.report, span, name, None, "it is a function of the language")
        elif name in ROOTS and not scope.local:
            mistakes.declared_twice(self.report, span, name, None, IN_EVERY_RULE)
        scope.names[name] = named

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
        return Binding(node.name, kind, type, node.name_span, stage_of(value), value)

    def _let(self, node: tree.Let, scope: Scope) -> Binding:
        binding = self._valued(node, scope, Kind.LET)
        self.declare(scope, node.name, node.name_span, binding)
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
                mistakes.after_score(self.report, head(node), _word(node))
            made = self._statement(node, scope, where, parts)
            if made is not None:
                result.append(made)
        return result

    def _may_stand(self, node: tree.Statement, where: str) -> bool:
        kind: type | str = node.keyword if isinstance(node, tree.Block) else type(node)
        if kind in ALLOWED[where]:
            return True
        mistakes.misplaced(self.report, head(node), _word(node), where, _where_instead(node, where))
        return False

    def _statement(self, node: tree.Statement, scope: Scope, where: str, parts: _Parts) -> Statement | None:
        match node:
            case tree.Const():
                self.declare(scope, node.name, node.name_span, self.const(node, scope))
            case tree.Param():
                self._param(node, scope, parts)
            case tree.Function():
                function = self.function(node, scope)
                if node.name in names_in(node):
                    mistakes.recursion(self.report, node.name_span, [node.name, node.name])
                    scope.forget(node.name)
                self.function_body(node, function, scope)
                self.declare(scope, node.name, node.name_span, function)
            case tree.Let():
                return Let(node.span, self._let(node, scope))
            case tree.View():
                self._view(node, scope, parts)
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
        variables = self.expressions.variables(names, range_, scope)
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
        self.declare(scope, node.name, node.name_span, binding)
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

    # ---- views

    def _view(self, node: tree.View, scope: Scope, parts: _Parts) -> None:
        inner = scope.inner()
        joins: list[Join] = []
        for i, bind in enumerate(node.binds):
            made = self._relation(bind, scope) if i == 0 else self._joined(bind, inner)
            if bind.name in inner.names or scope.clash(bind.name):
                mistakes.declared_twice(self.report, bind.name_span, bind.name, None, IN_SCOPE)
            inner.names[bind.name] = made.variable
            joins.append(made)
        where = self.expressions.condition(node.where, inner) if node.where is not None else None
        keys = tuple(self._key(key, inner) for key in node.by)
        amount = self.expressions.expr(node.amount, inner) if node.amount is not None else None
        type = self._view_type(node, joins, keys, amount)
        view = View(node.name, node.name_span, node.form, tuple(joins), where, keys, amount, type, node.doc)
        for expr in (*(j.range for j in joins[1:]), where, *keys, amount):
            if expr is not None:
                self._only_rows(expr, view)
        stage = Stage.FEASIBLE if view.relation == "feasible" else Stage.CLUSTER
        binding = Binding(node.name, Kind.VIEW, type, node.name_span, stage, view=view)
        self.declare(scope, node.name, node.name_span, binding)
        parts.views.append(binding)

    def _relation(self, bind: tree.Bind, scope: Scope) -> Join:
        relation: str = "nodes"
        type: Type = UNKNOWN
        match bind.relation:
            case tree.Field(value=tree.Name(name="cluster"), name=("pods" | "nodes") as name):
                relation, type = name, schema.RELATIONS[name]
            case tree.Name(name="feasible") if scope.find("feasible") is not None:
                relation, type = "feasible", schema.NODE
            case other:
                known = "`cluster.pods`, `cluster.nodes` or `feasible`"
                in_priority = scope.find("feasible") is not None
                mistakes.not_a_relation(
                    self.report, other.span, known if in_priority else "`cluster.pods` or `cluster.nodes`"
                )
        return Join(Binding(bind.name, Kind.ROW, type, bind.name_span, Stage.CLUSTER), relation, None)

    def _joined(self, bind: tree.Bind, inner: Scope) -> Join:
        range_ = self.expressions.expr(bind.relation, inner)
        item: Type = UNKNOWN
        if isinstance(range_.type, List):
            item = range_.type.item
        elif not isinstance(range_.type, Unknown):
            mistakes.wrong_type(self.report, bind.relation.span, "a list", range_.type, "what a view also runs through")
        return Join(Binding(bind.name, Kind.ROW, item, bind.name_span, Stage.CLUSTER), "", range_)

    def _key(self, node: tree.Expr, scope: Scope) -> Expr:
        key = self.expressions.expr(node, scope)
        if not isinstance(key.type, String | Int | Bool | Unknown):
            mistakes.wrong_type(self.report, node.span, "a string, an int or a bool", key.type, "a key of a view")
        return key

    def _view_type(self, node: tree.View, joins: list[Join], keys: tuple[Expr, ...], amount: Expr | None) -> Type:
        if node.form == "first":
            if keys or len(joins) > 1:
                mistakes.bad_view(self.report, node.name_span, "a `first` view runs over one relation and has no `by`")
                return UNKNOWN
            return joins[0].variable.type
        type: Type = INT
        if amount is not None:
            if not isinstance(amount.type, Int | Double | Unknown):
                mistakes.wrong_type(self.report, amount.span, "an int or a double", amount.type, "what a view sums")
            if isinstance(amount.type, Double) and joins[0].relation != "feasible":
                mistakes.bad_view(
                    self.report,
                    amount.span,
                    "doubles can be summed over `feasible` only: their sum depends on the order",
                )
            type = amount.type
        for key in reversed(keys):
            type = Map(key.type, type)
        return type

    def _only_rows(self, expr: Expr, view: View) -> None:
        """A view reads its rows, the pod and what these name: not the node, not another view."""
        for part in walk(expr):
            if isinstance(part, NodeScore) and view.relation != "feasible":
                mistakes.view_reads_view(self.report, part.span, "scores, unless it runs over `feasible`")
            if isinstance(part, Invoke) and part.function.stage > Stage.POD:
                self._foreign(
                    part.span, part.function.stage, f"`{part.function.name}`, which reads more than its arguments"
                )
        for ref in references(expr):
            binding = ref.binding
            if binding.kind in (Kind.ROW, Kind.VARIABLE) or binding.stage <= Stage.POD:
                continue
            if binding.kind is Kind.VIEW and not (view.relation == "feasible" and binding.stage == Stage.CLUSTER):
                mistakes.view_reads_view(self.report, ref.span, "another view")
            elif view.relation == "feasible" and binding.stage < Stage.NODE:
                continue
            else:
                self._foreign(ref.span, binding.stage, f"`{binding.name}`, which reads a view")

    def _foreign(self, span: Span, stage: Stage, what: str) -> None:
        if stage == Stage.NODE:
            mistakes.view_reads_node(self.report, span)
        else:
            mistakes.view_reads_view(self.report, span, what)


def _is_broken(value: Expr) -> bool:
    """A mistake elsewhere is why its type is not known."""
    return any(isinstance(part.type, Unknown) for part in walk(value))


def names_in(node: tree.Function | tree.Const) -> set[str]:
    """The names of other declarations that its expressions read: not its parameters, lets and variables."""
    if isinstance(node, tree.Const):
        return free_names(node.value, frozenset())
    own = {parameter.name for parameter in node.parameters}
    found: set[str] = set()
    for let in node.lets:
        found |= free_names(let.value, frozenset(own))
        own.add(let.name)
    return found | free_names(node.value, frozenset(own))


def free_names(expr: tree.Expr, bound: frozenset[str]) -> set[str]:
    """The names that an expression reads but does not bind; a call's name is another kind of name, and never bound."""
    found: set[str] = set()
    pending = [(expr, bound)]
    while pending:
        part, hidden = pending.pop()
        match part:
            case tree.Name(name=name) if name not in hidden:
                found.add(name)
            case tree.Call(name=name):
                found.add(name)
            case tree.Method(name=name, arguments=[*variables, body]) if name in MACROS:
                names = {variable.name for variable in variables if isinstance(variable, tree.Name)}
                pending += [(part.value, hidden), (body, hidden | names)]
                continue
        pending += [(child, hidden) for child in children(part)]
    return found


def _where_instead(node: tree.Statement, where: str) -> str:
    """Where a misplaced statement belongs."""
    match node:
        case tree.View() if where == "`for`":
            return "declare the view above, with one more `x in LIST` and one more key"
        case tree.View() | tree.Param():
            return "declare it at the top of the rule"
        case tree.Deny() | tree.Stop() if "priority" in where or where == "`prescore`":
            return "a priority only scores; say in a `predicate` which nodes are denied"
        case tree.Deny() | tree.Stop() | tree.Fail() if where == "`normalize`":
            return "`normalize` has `let`, `view` and `score` only"
        case tree.Score() | tree.Normalize() if where in ("a predicate", "`collect`", "`prefilter`"):
            return "a predicate only denies; give scores in a `priority`"
        case tree.Block(keyword="collect"):
            return "`collect` stands in a predicate or its `prefilter`, not in another block"
        case tree.Block(keyword="prefilter" | "prescore" as keyword):
            kind = "predicate" if keyword == "prefilter" else "priority"
            return f"`{keyword}` stands at the top of a {kind}"
    return ""


def _word(node: tree.Statement) -> str:
    return f"`{node.keyword}`" if isinstance(node, tree.Block) else WORDS[type(node)]


def head(node: tree.Statement) -> Span:
    """The keyword: what a diagnostic about the statement points at."""
    if isinstance(node, tree.Block | tree.Normalize):
        return node.keyword_span
    word = WORDS[type(node)].strip("`")
    start = node.span.start
    return Span(node.span.source, start, start + len(word))
