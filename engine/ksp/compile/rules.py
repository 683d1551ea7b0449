"""The code of a rule: one Python function, nested by stage.

    def RULE(parameters...):                  once, when the policy is loaded
        def bind(pod, cluster):               once for each pod: (outcome, what judges nodes)
            def check(node): ...              for each node of a predicate: None, a Denial or a Failure
            def scores(feasible): ...         of a priority: the scores of the nodes, or a Failure
            def normalize(feasible, raw): ... of a priority: the scores from 0 to 100

`bind` answers without a judge (None) where no node can be denied, or gives `outcome`: what `prefilter` or `prescore`
say.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from ksp.check.limits import extent
from ksp.check.schema import NODE
from ksp.check.stages import stage_of
from ksp.check.typed import (
    At,
    Binding,
    Collect,
    Constant,
    Deny,
    Expr,
    Fail,
    For,
    Kind,
    Let,
    NodeScore,
    Ref,
    Rule,
    Stage,
    Statement,
    Stop,
)
from ksp.check.types import BOOL, INT, List
from ksp.compile import code
from ksp.compile.emit import Chain, Emitter
from ksp.compile.inline import inline, replaced
from ksp.compile.places import Block, Branch, Frame, Lines, key_of
from ksp.compile.possible import Possible, both, either
from ksp.compile.runtime import Denial
from ksp.compile.views import ViewCode

NONE = code.constant(None)
WRITTEN_OUT = 2_000  # expressions, at most, of a score with its lets in their places


class RuleCode:
    """Makes the code of one rule."""

    def __init__(self, rule: Rule, *, traced: bool = False) -> None:
        self.rule = rule
        self.emitter = Emitter(traced=traced)
        self.emitter.view_code = ViewCode(self.emitter)
        self.possible = Possible(lets=self.emitter.lets)
        self.collecting = False
        self.wrap_return = False  # in `bind`, what a statement returns is the outcome, without a judge

    def function(self) -> ast.FunctionDef:
        names = self.emitter.names
        top = Frame(None, names)
        for parameter in self.rule.parameters:
            top.names[parameter.binding] = names.fresh(parameter.binding.name)
        bind = Frame(top, names)
        bind.names.update({"pod": "pod", "cluster": "cluster"})
        chain: Chain = (top, bind)
        self._early_lets((*self.rule.before, *self.rule.body))
        self.wrap_return = True
        self._statements(self.rule.before, chain, bind)
        self.wrap_return = False
        if self.rule.kind == "predicate":
            self._predicate(chain, bind)
        else:
            self._priority(chain, bind)
        top.lines.append(code.function("bind", ["pod", "cluster"], bind.lines))
        top.lines.append(code.return_(code.name("bind")))
        parameters = [top.names[p.binding] for p in self.rule.parameters]
        return code.function(
            names.fresh(self.rule.name), [*parameters, *(("trace",) if self.emitter.traced else ())], top.lines
        )

    def _early_lets(self, statements: Sequence[Statement]) -> None:
        """Lets are computed when they are first read; here they only become known."""
        for statement in statements:
            if isinstance(statement, Let):
                assert statement.binding.value is not None
                value = inline(statement.binding.value)
                statement.binding.stage = stage_of(value)
                self.emitter.lets[statement.binding] = value
            elif isinstance(statement, For | Collect):
                self._early_lets(statement.body)

    # ---- predicates

    def _predicate(self, chain: Chain, bind: Frame) -> None:
        possible = self._may_fire(self.rule.body)
        if isinstance(possible, Constant) and not possible.value:
            bind.lines.append(self._outcome(NONE, NONE))
            return
        if not isinstance(possible, Constant):
            guard = code.not_(self.emitter.expr(possible, chain))
            bind.lines.append(code.if_(guard, [self._outcome(NONE, NONE)]))
        frame = Frame(bind, self.emitter.names)
        frame.names["node"] = "node"
        self._statements(self.rule.body, (*chain, frame), frame)
        frame.lines.append(code.return_(NONE))
        bind.lines.append(code.function("check", ["node"], frame.lines))
        bind.lines.append(self._outcome(NONE, code.name("check")))

    def _outcome(self, outcome: ast.expr, *judges: ast.expr) -> ast.stmt:
        return code.return_(code.tuple_of([outcome, *judges]))

    def _may_fire(self, statements: Sequence[Statement]) -> Expr:
        """Whether a `deny` or `fail` of the statements can hold on some node, as far as the pod tells."""
        place = Constant(self.rule.span, BOOL, value=False)
        result: Expr = place
        for statement in reversed(statements):
            match statement:
                case Deny(condition=condition) | Fail(condition=condition):
                    result = either(place, [self.possible.may_be(inline(condition), value=True), result])
                case Stop(condition=condition):
                    result = both(place, [self.possible.may_be(inline(condition), value=False), result])
                case For(variables=variables, range=range_, body=body):
                    range_ = inline(range_)
                    for variable in variables:
                        variable.stage = stage_of(range_)
                    inside = self._may_fire(body)
                    if not self.possible.early(range_):
                        inside = inside if isinstance(inside, Constant) else Constant(range_.span, BOOL, value=True)
                    elif len(variables) == 1:
                        inside = self.possible.exists_over(range_, variables[0], inside)
                    else:
                        inside = self.possible.exists_over_entries(range_, variables, inside)
                    result = either(place, [inside, result])
                case Collect(body=body):
                    result = either(place, [self._may_fire(body), result])
        return result

    # ---- statements

    def _statements(self, statements: Sequence[Statement], chain: Chain, place: Lines) -> None:
        for statement in statements:
            match statement:
                case Deny():
                    self._deny(statement, chain, place)
                case Fail(message=message, condition=condition):
                    branch, inside = self._branch(place, chain)
                    made = code.call("_Failure", self.emitter.expr(inline(message), inside))
                    branch.lines.append(self._return(made))
                    self._if(condition, chain, place, branch)
                case Stop(condition=condition):
                    branch, _ = self._branch(place, chain)
                    branch.lines.append(self._ended())
                    self._if(condition, chain, place, branch)
                case For():
                    self._for(statement, chain, place)
                case Collect(body=body):
                    self._collect(body, chain, place)

    def _branch(self, place: Lines, chain: Chain) -> tuple[Branch, Chain]:
        branch = Branch(place, self.emitter.names)
        return branch, (*chain, branch)

    def _if(self, condition: Expr, chain: Chain, place: Lines, branch: Branch) -> None:
        test = self.emitter.expr(inline(condition), chain)
        place.lines.append(code.if_(test, branch.lines))

    def _return(self, made: ast.expr) -> ast.stmt:
        if not self.wrap_return:
            return code.return_(made)
        judges = [NONE] if self.rule.kind == "predicate" else [NONE, NONE]
        return self._outcome(made, *judges)

    def _ended(self) -> ast.stmt:
        """The rule ends: it admits, or says what was collected."""
        if not self.collecting:
            return self._return(NONE)
        return self._return(ast.IfExp(code.name("reasons"), _collected(), NONE))

    def _deny(self, statement: Deny, chain: Chain, place: Lines) -> None:
        branch, inside = self._branch(place, chain)
        reasons = [self.emitter.expr(inline(reason), inside) for reason in statement.reasons]
        if self.collecting:
            branch.lines.append(ast.Expr(code.method(code.name("reasons"), "extend", code.tuple_of(reasons))))
            if statement.unresolvable:
                branch.lines.append(code.assign("unresolvable", code.constant(value=True)))
        elif all(isinstance(reason, ast.Constant) for reason in reasons):
            texts = tuple(reason.value for reason in reasons if isinstance(reason, ast.Constant))
            denial = Denial(statement.unresolvable, texts)  # type: ignore[arg-type]
            branch.lines.append(self._return(self.emitter.constant(denial, "denial")))
        else:
            made = code.call("_Denial", code.constant(statement.unresolvable), code.tuple_of(reasons))
            branch.lines.append(self._return(made))
        self._if(statement.condition, chain, place, branch)

    def _collect(self, body: Sequence[Statement], chain: Chain, place: Lines) -> None:
        place.lines.append(code.assign("reasons", ast.List([], ast.Load())))
        place.lines.append(code.assign("unresolvable", code.constant(value=False)))
        self.collecting = True
        self._statements(body, chain, place)
        self.collecting = False
        place.lines.append(code.if_(code.name("reasons"), [self._return(_collected())]))

    def _for(self, statement: For, chain: Chain, place: Lines) -> None:
        range_ = inline(statement.range)
        for variable in statement.variables:
            variable.stage = stage_of(range_)
        block = Block(place, self.emitter.names)
        early, inside = self.emitter.enter(statement.variables, range_, block, chain)
        self._statements(statement.body, inside, block)
        names = [block.names[v] for v in statement.variables]
        values = self.emitter.run(range_, statement.variables, names, early, chain, ordered=True)
        columns = early.columns if early is not None else []
        place.lines.append(ast.For(code.target([*names, *columns]), values, block.lines or [ast.Pass()], []))

    # ---- priorities

    def _priority(self, chain: Chain, bind: Frame) -> None:
        assert self.rule.score is not None
        bind.lines.append(self._scores(chain, bind, inline(self.rule.score)))
        normalize = self.rule.normalize
        judge: ast.expr = NONE
        if normalize is not None and normalize.form == "block":
            bind.lines.append(self._normalize(chain, bind))
            judge = code.name("normalize")
        elif normalize is not None:
            judge = code.name(f"_{normalize.form}")
        bind.lines.append(self._outcome(NONE, code.name("scores"), judge))

    def _feasible(self, bind: Frame) -> Frame:
        frame = Frame(bind, self.emitter.names)
        frame.names["feasible"] = "feasible"
        return frame

    def _scores(self, chain: Chain, bind: Frame, score: Expr) -> ast.stmt:
        frame = self._feasible(bind)
        outer = (*chain, frame)
        raw = code.name("raw")
        frame.lines.append(code.assign("raw", ast.List([], ast.Load())))
        self._same_for_all(frame, outer, score)
        block = Block(frame, self.emitter.names)
        block.names["node"] = "node"
        self._statements(self.rule.body, (*outer, block), block)
        block.lines.append(ast.Expr(code.method(raw, "append", self.emitter.expr(score, (*outer, block)))))
        frame.lines.append(ast.For(code.store("node"), code.name("feasible"), block.lines, []))
        frame.lines.append(code.return_(raw))
        return code.function("scores", ["feasible"], frame.lines)

    def _same_for_all(self, frame: Frame, chain: Chain, score: Expr) -> None:
        """Where the score does not differ from node to node it is computed once, for a node without anything."""
        varies = Possible(_before_a_node, self.emitter.lets)
        condition = either(score, [varies.may_vary(self._with_lets(score)), self._may_fire(self.rule.body)])
        if isinstance(condition, Constant) and condition.value:
            return
        branch = Branch(frame, self.emitter.names)
        branch.names["node"] = "_empty_node"
        alone = self.emitter.inner(score, (*chain, branch))
        branch.lines.append(code.return_(_repeated(alone)))
        test = self.emitter.expr(condition, chain)
        frame.lines.append(code.if_(code.not_(test), branch.lines))

    def _with_lets(self, expr: Expr) -> Expr:
        """The expression with the rule's own lets written out, so that what they vary with is seen; as it is, if that
        makes it large."""
        written = expr
        normalize = self.rule.normalize.body if self.rule.normalize else ()
        for statement in reversed((*self.rule.body, *normalize)):
            if (
                isinstance(statement, Let)
                and statement.binding.stage > Stage.FEASIBLE
                and statement.binding in self.emitter.lets
            ):
                written = inline(written, {statement.binding: self.emitter.lets[statement.binding]})
                if extent(written)[0] > WRITTEN_OUT:
                    return expr
        return written

    def _same_where_raw_is(self, frame: Frame, chain: Chain, score: Expr) -> None:
        """Where all nodes have the same score so far, and nothing else of them matters, one of them stands for all."""
        varies = Possible(_before_a_node, self.emitter.lets)
        condition = varies.may_vary(_with_one_score(self._with_lets(score)))
        if isinstance(condition, Constant) and condition.value:
            return
        branch = Branch(frame, self.emitter.names)
        branch.names["node"] = "first"
        branch.lines.append(code.assign("first", _item(code.name("feasible"), 0)))
        alone = self.emitter.inner(score, (*chain, branch))
        branch.lines.append(code.return_(_repeated(alone)))
        raw = code.name("raw")
        alike = code.compare(code.method(raw, "count", _item(raw, 0)), ast.Eq(), code.call("len", raw))
        test = code.not_(self.emitter.expr(condition, chain))
        frame.lines.append(code.if_(ast.BoolOp(ast.And(), [raw, alike, test]), branch.lines))

    def _normalize(self, chain: Chain, bind: Frame) -> ast.stmt:
        normalize = self.rule.normalize
        assert normalize is not None
        assert normalize.score is not None
        self._early_lets(normalize.body)
        frame = self._feasible(bind)
        frame.names["scores"] = "scores"
        names = ast.GeneratorExp(
            code.attribute(code.name("node"), "name"), [code.clause(["node"], code.name("feasible"))]
        )
        frame.lines.append(code.assign("scores", code.call("dict", code.call("zip", names, code.name("raw")))))
        score = inline(normalize.score)
        outer = (*chain, frame)
        self._same_where_raw_is(frame, outer, score)
        block = Block(frame, self.emitter.names)
        block.names["node"] = "node"
        made = self.emitter.expr(score, (*outer, block))
        frame.lines.append(code.assign("normal", ast.List([], ast.Load())))
        block.lines.append(ast.Expr(code.method(code.name("normal"), "append", made)))
        frame.lines.append(ast.For(code.store("node"), code.name("feasible"), block.lines, []))
        frame.lines.append(code.return_(code.name("normal")))
        return code.function("normalize", ["feasible", "raw"], frame.lines)


def _item(values: ast.expr, index: int) -> ast.expr:
    return ast.Subscript(values, code.constant(index), ast.Load())


def _repeated(score: ast.expr) -> ast.expr:
    """The score for each feasible node."""
    return ast.BinOp(ast.List([score], ast.Load()), ast.Mult(), code.call("len", code.name("feasible")))


def _with_one_score(expr: Expr) -> Expr:
    """The expression as if each node had the score of the first."""
    return replaced(expr, lambda part: replace(part, node=_first(part.node)) if _is_of_node(part) else None)


def _is_of_node(expr: Expr) -> TypeGuard[NodeScore]:
    """`node.score`; of other expressions it is not known that they give a feasible node."""
    match expr:
        case NodeScore(node=Ref(binding=binding)):
            return key_of(binding) == "node"
    return False


def _first(node: Expr) -> Expr:
    nodes = Ref(node.span, List(NODE), Binding("feasible", Kind.ROOT, List(NODE), None, Stage.FEASIBLE))
    return At(node.span, NODE, nodes, Constant(node.span, INT, 0))


def _before_a_node(expr: Expr) -> bool:
    return stage_of(expr) <= Stage.FEASIBLE


def _collected() -> ast.expr:
    return code.call("_Denial", code.name("unresolvable"), code.call("tuple", code.name("reasons")))
