"""The code of a priority: scores, and how they become 0 to 100."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TypeGuard

from ksp.check.limits import extent
from ksp.check.parts import statement_expressions
from ksp.check.schema import NODE
from ksp.check.stages import stage_of
from ksp.check.typed import (
    At,
    Binding,
    Constant,
    Expr,
    Kind,
    Let,
    NodeScore,
    Ref,
    Stage,
)
from ksp.check.types import INT, List
from ksp.compile import code
from ksp.compile.columns.generate import ColumnCode
from ksp.compile.emit import Chain
from ksp.compile.inline import inline, replaced
from ksp.compile.places import Block, Branch, Frame, key_of
from ksp.compile.possible import Possible, either
from ksp.compile.statements import NONE, StatementCode

WRITTEN_OUT = 2_000  # expressions, at most, of a score with its lets in their places


class PriorityCode:
    """Makes the functions of one priority, in the function that asks for its views."""

    def __init__(self, code_: StatementCode, columns: ColumnCode) -> None:
        self.code = code_
        self.columns = columns
        self.rule = code_.rule
        self.emitter = code_.emitter

    def functions(self, chain: Chain) -> list[ast.expr]:
        """Adds the functions; what a BoundPriority has between its outcome and `shared`."""
        assert self.rule.score is not None
        at = chain[-1]
        assert isinstance(at, Frame)
        score = inline(self.rule.score)
        constant = one = many = NONE
        if self._reads_feasible(score):
            at.lines.append(self._scores(chain, at, score))
            many = code.name("scores")
            constant = self._before_feasible(chain, score)
        else:
            one = code.name("score")
            constant = self._score(chain, at, score)
        column = self.columns.priority(chain, over_feasible=one is NONE)
        normalize = self.rule.normalize
        scaled: ast.expr = NONE
        if normalize is not None and normalize.form == "block":
            at.lines.append(self._normalize(chain, at))
            scaled = code.name("normalize")
        elif normalize is not None:
            scaled = code.name(f"_{normalize.form}")
        return [constant, one, many, column, scaled, self.columns.normal(chain)]

    def _reads_feasible(self, score: Expr) -> bool:
        """The score of a node depends on which others are feasible."""
        exprs = [score, *(inline(e) for s in self.rule.body for e in statement_expressions(s))]
        names = {name for expr in exprs for name in self.emitter.free.through_lets(expr, self.emitter.lets)}
        return any(isinstance(name, Binding) and _is_of_feasible(name) for name in names)

    def _score(self, chain: Chain, at: Frame, score: Expr) -> ast.expr:
        """The function of one node; and the score of all nodes, if it cannot vary."""
        frame = Frame(at, self.emitter.names)
        frame.names["node"] = "node"
        inside = (*chain, frame)
        self.code.statements(self.rule.body, inside, frame)
        frame.lines.append(code.return_(self.emitter.expr(score, inside)))
        at.lines.append(code.function("score", ["node"], frame.lines))
        varies = self._may_vary(score, Possible(_before_a_node, self.emitter.lets))
        if isinstance(varies, Constant) and varies.value:
            return NONE
        alone = code.call("score", code.name("_empty_node"))
        return ast.IfExp(self.emitter.expr(varies, chain), NONE, alone)

    def _before_feasible(self, chain: Chain, score: Expr) -> ast.expr:
        """The score of all nodes, if it depends neither on the node nor on which are feasible."""
        varies = self._may_vary(score, Possible(lets=self.emitter.lets))
        if isinstance(varies, Constant) and varies.value:
            return NONE
        alone = _item(code.call("scores", code.tuple_of([code.name("_empty_node")])), 0)
        return ast.IfExp(self.emitter.expr(varies, chain), NONE, alone)

    def _may_vary(self, score: Expr, varies: Possible) -> Expr:
        """Whether the score can differ, by what is known where that is asked, or be a failure."""
        fires = self.code.may_fire(self.rule.body, Possible(lets=self.emitter.lets))
        return either(score, [varies.may_vary(self._with_lets(score)), fires])

    def _feasible(self, at: Frame) -> Frame:
        frame = Frame(at, self.emitter.names)
        frame.names["feasible"] = "feasible"
        return frame

    def _scores(self, chain: Chain, at: Frame, score: Expr) -> ast.stmt:
        frame = self._feasible(at)
        outer = (*chain, frame)
        raw = code.name("raw")
        frame.lines.append(code.assign("raw", ast.List([], ast.Load())))
        self._same_for_all(frame, outer, score)
        block = Block(frame, self.emitter.names)
        block.names["node"] = "node"
        self.code.statements(self.rule.body, (*outer, block), block)
        block.lines.append(ast.Expr(code.method(raw, "append", self.emitter.expr(score, (*outer, block)))))
        frame.lines.append(ast.For(code.store("node"), code.name("feasible"), block.lines, []))
        frame.lines.append(code.return_(raw))
        return code.function("scores", ["feasible"], frame.lines)

    def _same_for_all(self, frame: Frame, chain: Chain, score: Expr) -> None:
        """Where the score does not differ from node to node it is computed once, for a node without anything."""
        condition = self._may_vary(score, Possible(_before_a_node, self.emitter.lets))
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

    def _normalize(self, chain: Chain, at: Frame) -> ast.stmt:
        normalize = self.rule.normalize
        assert normalize is not None
        assert normalize.score is not None
        self.code.learn(normalize.body)
        frame = self._feasible(at)
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


def _is_of_feasible(binding: Binding) -> bool:
    if binding.view is not None and binding.kind is Kind.VIEW:
        return binding.view.relation == "feasible"
    return binding.kind is Kind.ROOT and binding.name == "feasible"


def _before_a_node(expr: Expr) -> bool:
    return stage_of(expr) <= Stage.FEASIBLE
