"""The column functions of a rule, beside its scalar ones: `column`, and of a priority `normal`.

A rule whose verdict depends on a few parts of a node alone, such as its taints, is asked by its scalar function, once
for each combination of them. Any other is written statement by statement over arrays. What has neither form stays
scalar, and `scalar_because` says why.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ksp.check.parts import statement_expressions
from ksp.check.typed import Binding, Collect, Expr, For, Let, Rule, Statement
from ksp.compile import code
from ksp.compile.columns.combinations import parts_in
from ksp.compile.columns.over_feasible import Reductions
from ksp.compile.columns.reads import NodeReads, UnfitError
from ksp.compile.columns.scope import ROWS, Scope
from ksp.compile.columns.statements import RULING, ColumnStatements
from ksp.compile.columns.values import Values
from ksp.compile.emit import Chain, Emitter
from ksp.compile.free import FreeNames
from ksp.compile.inline import inline
from ksp.compile.places import Frame

NONE: ast.expr = code.constant(None)


class ColumnCode:
    """Makes the column functions of one rule, in the function that asks for its views. `by_parts` if its scalar
    function is asked for each combination of parts; `scalar_because` says why it, or its `normalize`, has no column
    form, "" if it has one."""

    def __init__(self, rule: Rule, emitter: Emitter) -> None:
        self.rule = rule
        self.emitter = emitter
        self.by_parts = False
        self.scalar_because = ""

    def predicate(self, chain: Chain) -> ast.expr:
        """Adds `column` to the chain's last place, after `check`; its name, or None."""
        return self._added(chain, self._predicate)

    def priority(self, chain: Chain, *, over_feasible: bool) -> ast.expr:
        """The same after `score`; with `over_feasible` after `scores`, which gets exactly the feasible nodes."""
        return self._added(chain, self._over_feasible if over_feasible else self._priority)

    def normal(self, chain: Chain) -> ast.expr:
        """Adds `normal` after `normalize`, if that is a block; what the column form of it is called, or None."""
        normalize = self.rule.normalize
        if normalize is None:
            return NONE
        if normalize.form != "block":
            return code.name("_scaled_reversed" if normalize.form == "reversed" else "_scaled")
        made = self._added(chain, self._normal, "normal")
        at = chain[-1]
        assert isinstance(at, Frame)
        parts = None if made is NONE else parts_in(at.lines[-1])
        return made if parts is None else code.call("_ByCombination", parts, made)

    def _added(self, chain: Chain, make: Callable[[Scope, Chain], ast.stmt], name: str = "column") -> ast.expr:
        if self.emitter.traced:
            return NONE
        at = chain[-1]
        assert isinstance(at, Frame)
        scope = Scope(self.emitter, Frame(at, self.emitter.names), "raw" if name == "normal" else "")
        lets, free = dict(self.emitter.lets), self.emitter.free
        try:
            with scope.attempt(chain):
                at.lines.append(make(scope, chain))
        except UnfitError as error:
            self.scalar_because = self.scalar_because or str(error)
            return NONE
        finally:
            self.emitter.lets.clear()
            self.emitter.lets.update(lets)
            self.emitter.free = free
        return code.name(name)

    # ---- predicates

    def _predicate(self, scope: Scope, chain: Chain) -> ast.stmt:
        reads = scope.reader.of(*self._expressions(), bound=_variables(self.rule.body))
        if reads.plain:
            return self._by_parts("_verdicts_by_parts", "check", reads, scope, chain)
        try:
            with scope.attempt(chain):
                return self._ruled(scope, chain)
        except UnfitError:
            if reads.whole or reads.maps:
                raise
            return self._by_parts("_verdicts_by_parts", "check", reads, scope, chain)

    def _expressions(self) -> list[Expr]:
        found = (e for statement in self.rule.body for e in _all_of(statement))
        return [inline(expr) for expr in found]

    def _by_parts(self, function: str, scalar: str, reads: NodeReads, scope: Scope, chain: Chain) -> ast.stmt:
        self.by_parts = True
        made = code.call(function, ROWS, scope.parts(reads, chain), code.name(scalar))
        return code.function("column", ["rows"], [code.return_(made)])

    def _ruled(self, scope: Scope, chain: Chain) -> ast.stmt:
        inside = (*chain, scope.frame)
        scope.frame.lines.append(code.assign("ruling", code.call("_Ruling", ROWS)))
        end = code.method(RULING, "verdicts")
        ColumnStatements(scope, Values(scope), end).statements(self.rule.body, inside)
        return self._function(scope, end)

    def _function(self, scope: Scope, result: ast.expr, name: str = "column", *more: str) -> ast.FunctionDef:
        lines: list[ast.stmt] = [*scope.frame.lines, code.return_(result)]
        if any(isinstance(n, ast.Name) and n.id == "feasible" for line in lines for n in ast.walk(line)):
            lines.insert(0, code.assign("feasible", code.attribute(ROWS, "nodes")))
        if scope.noisy:
            lines = [ast.With([ast.withitem(code.call("_quiet"))], lines)]
        return code.function(name, ["rows", *more], lines)

    # ---- priorities

    def _priority(self, scope: Scope, chain: Chain) -> ast.stmt:
        assert self.rule.score is not None
        score = inline(self.rule.score)
        reads = scope.reader.of(*self._expressions(), score, bound=_variables(self.rule.body))
        if reads.plain:
            return self._by_parts("_scores_by_parts", "score", reads, scope, chain)
        try:
            with scope.attempt(chain):
                return self._scored(score, scope, chain)
        except UnfitError:
            if reads.whole or reads.maps:
                raise
            return self._by_parts("_scores_by_parts", "score", reads, scope, chain)

    def _over_feasible(self, scope: Scope, chain: Chain) -> ast.stmt:
        assert self.rule.score is not None
        if any(_all_of(statement) for statement in self.rule.body):
            raise UnfitError("`fail` beside scores that depend on which nodes are feasible")
        return self._scored(self._reduced([inline(self.rule.score)], scope, chain)[0], scope, chain)

    def _normal(self, scope: Scope, chain: Chain) -> ast.stmt:
        assert self.rule.normalize is not None
        assert self.rule.normalize.score is not None
        scope.frame.names["raw"] = "raw"
        score = self._reduced([inline(self.rule.normalize.score)], scope, chain)[0]
        return self._function(scope, Values(scope).operand(score, (*chain, scope.frame)), "normal", "raw")

    def _reduced(self, exprs: Sequence[Expr], scope: Scope, chain: Chain) -> list[Expr]:
        """The expressions, and the lets that they read, with names for what is asked of all rows."""
        scope.frame.names["feasible"] = "feasible"
        reductions = Reductions(scope, Values(scope), (*chain, scope.frame))
        names = {name for expr in exprs for name in scope.free.through_lets(expr, self.emitter.lets)}
        read = [name for name in self.emitter.lets if name in names]
        rewritten = {name: reductions.rewritten(self.emitter.lets[name]) for name in read}
        made = [reductions.rewritten(expr) for expr in exprs]
        self.emitter.lets.update(rewritten)
        scope.free = self.emitter.free = FreeNames()
        return made

    def _scored(self, score: Expr, scope: Scope, chain: Chain) -> ast.stmt:
        inside = (*chain, scope.frame)
        values = Values(scope)
        fails = any(_all_of(statement) for statement in self.rule.body)
        if fails:
            scope.frame.lines.append(code.assign("ruling", code.call("_Ruling", ROWS)))
            failed = code.call("_scored_unless", RULING, code.constant(0))
            ColumnStatements(scope, values, failed).statements(self.rule.body, inside)
        made = values.operand(score, inside)
        if fails:
            return self._function(scope, code.call("_scored_unless", RULING, made))
        return self._function(scope, code.call("_scored", made))


def _all_of(statement: Statement) -> Sequence[Expr]:
    """The expressions of a statement and of those in it, but for lets, which count where they are read."""
    match statement:
        case Let():
            return ()
        case For(range=range_, body=body):
            return (range_, *(e for inner in body for e in _all_of(inner)))
        case Collect(body=body):
            return tuple(e for inner in body for e in _all_of(inner))
    return tuple(statement_expressions(statement))


def _variables(statements: Sequence[Statement]) -> frozenset[Binding]:
    """The names that the loops among the statements give."""
    found: set[Binding] = set()
    for statement in statements:
        if isinstance(statement, For):
            found.update(statement.variables)
        if isinstance(statement, For | Collect):
            found |= _variables(statement.body)
    return frozenset(found)
