"""Views: over which relation they run, what they may read, and of which type they are."""

from __future__ import annotations

from ksp.check import mistakes, schema
from ksp.check.expressions import Expressions
from ksp.check.scope import IN_SCOPE, Scope, declare
from ksp.check.stages import references, walk
from ksp.check.typed import (
    Binding,
    Expr,
    Invoke,
    Join,
    Kind,
    NodeScore,
    Stage,
    View,
)
from ksp.check.types import (
    INT,
    UNKNOWN,
    Bool,
    Double,
    Int,
    List,
    Map,
    String,
    Type,
    Unknown,
)
from ksp.source.text import Span
from ksp.syntax import tree


class Views:
    """Checks views."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.report = expressions.report

    def view(self, node: tree.View, scope: Scope) -> Binding:
        """The view, and its name in the scope."""
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
        declare(self.report, scope, node.name, node.name_span, binding)
        return binding

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
            type = amount.type
            if not isinstance(amount.type, Int | Double | Unknown):
                type = UNKNOWN
                mistakes.wrong_type(self.report, amount.span, "an int or a double", amount.type, "what a view sums")
            if isinstance(amount.type, Double) and joins[0].relation != "feasible":
                mistakes.bad_view(
                    self.report,
                    amount.span,
                    "doubles can be summed over `feasible` only: their sum depends on the order",
                )
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
