"""The code of a rule's statements: what they deny, fail and stop, in the function that they stand in."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import Enum

from ksp.check.parts import statement_expressions
from ksp.check.stages import stage_of
from ksp.check.typed import (
    Collect,
    Constant,
    Deny,
    Expr,
    Fail,
    For,
    Let,
    Rule,
    Stage,
    Statement,
    Stop,
)
from ksp.check.types import BOOL
from ksp.compile import code
from ksp.compile.emit import Chain, Emitter
from ksp.compile.inline import inline
from ksp.compile.places import Block, Branch, Lines
from ksp.compile.possible import Possible, both, either
from ksp.compile.runtime import Denial

NONE: ast.expr = code.constant(None)


class Returning(Enum):
    """What a statement returns, by the function that it stands in."""

    ANSWER = 1  # of `check`, `score`: for one node
    BOUND = 2  # of `at`: for all nodes
    PREPARED = 3  # of `prepare`: for all nodes, in any state of the cluster


class StatementCode:
    """Makes the code of statements of one rule. `returning` is what they return where they stand now."""

    def __init__(self, rule: Rule, emitter: Emitter) -> None:
        self.rule = rule
        self.emitter = emitter
        self.returning = Returning.ANSWER
        self.collecting = False

    def learn(self, statements: Sequence[Statement]) -> None:
        """Lets are computed when they are first read; here they only become known."""
        for statement in statements:
            if isinstance(statement, Let):
                assert statement.binding.value is not None
                value = inline(statement.binding.value)
                statement.binding.stage = stage_of(value)
                self.emitter.lets[statement.binding] = value
            elif isinstance(statement, For | Collect):
                self.learn(statement.body)

    def stage(self, statements: Sequence[Statement]) -> Stage:
        """When all that the statements read is known."""
        found = Stage.CONSTANT
        for statement in statements:
            match statement:
                case For(variables=variables, range=range_, body=body):
                    stage = stage_of(inline(range_))
                    for variable in variables:
                        variable.stage = stage
                    found = max(found, stage, self.stage(body))
                case Collect(body=body):
                    found = max(found, self.stage(body))
                case Let():
                    pass  # counts where it is read
                case _:
                    found = max(found, *(stage_of(inline(expr)) for expr in statement_expressions(statement)))
        return found

    def may_fire(self, statements: Sequence[Statement], possible: Possible) -> Expr:
        """Whether a `deny` or `fail` of the statements can hold on some node, as far as is known before nodes."""
        place = Constant(self.rule.span, BOOL, value=False)
        result: Expr = place
        for statement in reversed(statements):
            match statement:
                case Deny(condition=condition) | Fail(condition=condition):
                    result = either(place, [possible.may_be(inline(condition), value=True), result])
                case Stop(condition=condition):
                    result = both(place, [possible.may_be(inline(condition), value=False), result])
                case For(variables=variables, range=range_, body=body):
                    range_ = inline(range_)
                    for variable in variables:
                        variable.stage = stage_of(range_)
                    inside = self.may_fire(body, possible)
                    if not possible.early(range_):
                        inside = inside if isinstance(inside, Constant) else Constant(range_.span, BOOL, value=True)
                    elif len(variables) == 1:
                        inside = possible.exists_over(range_, variables[0], inside)
                    else:
                        inside = possible.exists_over_entries(range_, variables, inside)
                    result = either(place, [inside, result])
                case Collect(body=body):
                    result = either(place, [self.may_fire(body, possible), result])
        return result

    def statements(self, statements: Sequence[Statement], chain: Chain, place: Lines) -> None:
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
        match self.returning:
            case Returning.ANSWER:
                return code.return_(made)
            case Returning.BOUND:
                return self.outcome(made)
            case Returning.PREPARED:
                return self.prepared(made)

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
        self.statements(body, chain, place)
        self.collecting = False
        place.lines.append(code.if_(code.name("reasons"), [self._return(_collected())]))

    def _for(self, statement: For, chain: Chain, place: Lines) -> None:
        range_ = inline(statement.range)
        for variable in statement.variables:
            variable.stage = stage_of(range_)
        block = Block(place, self.emitter.names)
        early, inside = self.emitter.enter(statement.variables, range_, block, chain)
        self.statements(statement.body, inside, block)
        names = [block.names[v] for v in statement.variables]
        values = self.emitter.run(range_, statement.variables, names, early, chain, ordered=True)
        columns = early.columns if early is not None else []
        place.lines.append(ast.For(code.target([*names, *columns]), values, block.lines or [ast.Pass()], []))

    def outcome(self, outcome: ast.expr) -> ast.stmt:
        """`at` ends without anything that judges nodes."""
        return code.return_(self._bound(outcome))

    def _bound(self, outcome: ast.expr) -> ast.expr:
        return code.tuple_of([outcome, *([NONE] * (2 if self.rule.kind == "predicate" else 6)), code.tuple_of([])])

    def prepared(self, outcome: ast.expr) -> ast.stmt:
        """`prepare` ends: whatever the views are, no node is judged. The key begins with what no value of a rule is, so
        that it is no other pod's, be its values encoded like the outcome."""
        key = code.tuple_of([NONE, outcome])
        return code.return_(code.tuple_of([key, code.call("_fixed", self._bound(outcome))]))


def _collected() -> ast.expr:
    return code.call("_Denial", code.name("unresolvable"), code.call("tuple", code.name("reasons")))
