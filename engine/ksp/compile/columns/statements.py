"""Statements to code over arrays: `ruling`, of ksp.compile.columns.verdicts, gathers what they say of the rows."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ksp.check.typed import Collect, Deny, Expr, Fail, For, Let, ListOf, Logic, Statement, Stop
from ksp.check.types import STRING, List
from ksp.compile import code
from ksp.compile.columns.reads import UnfitError
from ksp.compile.columns.scope import Scope
from ksp.compile.columns.values import Values
from ksp.compile.emit import Chain
from ksp.compile.inline import inline
from ksp.compile.places import Block, Branch, Frame, Lines
from ksp.compile.runtime import Denial

RULING = code.name("ruling")
NONE: ast.expr = code.constant(None)


class ColumnStatements:
    """Makes the code of a rule's statements in one column function; `end` is what it returns where all rows are
    settled."""

    def __init__(self, scope: Scope, values: Values, end: ast.expr) -> None:
        self.scope = scope
        self.values = values
        self.end = end
        self.collecting = False

    def statements(self, statements: Sequence[Statement], chain: Chain) -> None:
        for statement in statements:
            match statement:
                case Deny():
                    self._if(statement.condition, chain, statement)
                case Fail() | Stop():
                    self._if(statement.condition, chain, statement)
                case For():
                    self._for(statement, chain)
                case Collect(body=body):
                    self.collecting = True
                    self.statements(body, chain)
                    self.collecting = False
                    self._do("collected", chain)
                case Let():
                    pass

    def _for(self, statement: For, chain: Chain) -> None:
        range_ = inline(statement.range)
        if self.scope.late(range_):
            raise UnfitError("`for` over a list that differs from node to node")
        emitter = self.scope.emitter
        block = Block(chain[-1], emitter.names)
        early, inside = emitter.enter(statement.variables, range_, block, chain)
        self.statements(statement.body, inside)
        names = [block.names[v] for v in statement.variables]
        run = emitter.run(range_, statement.variables, names, early, chain, ordered=True)
        columns = early.columns if early is not None else []
        self.scope.here(chain).lines.append(
            ast.For(code.target([*names, *columns]), run, block.lines or [ast.Pass()], [])
        )

    def _if(self, condition: Expr, chain: Chain, then: Deny | Fail | Stop) -> None:
        """What the condition needs of nodes is the mask; where it fails without them, nothing is done."""
        condition = inline(condition)
        items = condition.items if isinstance(condition, Logic) and condition.operator == "&&" else (condition,)
        early = [item for item in items if not self.scope.late(item)]
        late = [item for item in items if self.scope.late(item)]
        here = self.scope.here(chain)
        branch = Branch(here, self.scope.emitter.names) if early else None
        inside = (*chain, branch) if branch is not None else chain
        mask: ast.expr = NONE
        if late:
            whole = late[0] if len(late) == 1 else Logic(condition.span, condition.type, "&&", tuple(late))
            mask = self.values.array(whole, inside)
        ends = not late and (not isinstance(then, Deny) or not self.collecting)
        if not ends or not isinstance(then, Stop):
            self._then(then, mask, inside)
        if branch is not None:
            if ends:
                branch.lines.append(code.return_(self.end))
            tests = [self.scope.early(item, chain) for item in early]
            here.lines.append(code.if_(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests), branch.lines))

    def _then(self, statement: Deny | Fail | Stop, mask: ast.expr, chain: Chain) -> None:
        match statement:
            case Stop():
                self._do("stop", chain, mask)
            case Fail(message=message):
                self._fail(inline(message), mask, chain)
            case Deny():
                self._deny(statement, mask, chain)

    def _fail(self, message: Expr, mask: ast.expr, chain: Chain) -> None:
        if self.scope.late(message):
            self._each("settle_each", message, mask, chain, lambda made: code.call("_Failure", made))
        else:
            self._do("settle", chain, mask, code.call("_Failure", self.scope.early(message, chain)))

    def _deny(self, statement: Deny, mask: ast.expr, chain: Chain) -> None:
        reasons = [inline(reason) for reason in statement.reasons]
        unresolvable = code.constant(statement.unresolvable)
        if any(self.scope.late(reason) for reason in reasons):
            listed = ListOf(statement.span, List(STRING), tuple(reasons))
            if self.collecting:
                self._each("note_each", listed, mask, chain, lambda made: made, unresolvable)
            else:
                self._each("settle_each", listed, mask, chain, lambda made: code.call("_Denial", unresolvable, made))
            return
        texts = [self.scope.early(reason, chain) for reason in reasons]
        if self.collecting:
            self._do("note", chain, mask, unresolvable, code.tuple_of(texts))
        elif all(isinstance(text, ast.Constant) for text in texts):
            values = tuple(text.value for text in texts if isinstance(text, ast.Constant))
            denial = Denial(statement.unresolvable, values)  # type: ignore[arg-type]
            self._do("settle", chain, mask, self.scope.emitter.constant(denial, "denial"))
        else:
            self._do("settle", chain, mask, code.call("_Denial", unresolvable, code.tuple_of(texts)))

    def _each(self, method: str, value: Expr, mask: ast.expr, chain: Chain, make: object, *more: ast.expr) -> None:
        """An answer that depends on the node: by the parts that it reads, if it reads nothing else."""
        reads = self.scope.reader.of(value)
        apart = bool(reads.whole or reads.maps)
        parts = code.tuple_of([]) if apart else self.scope.parts(reads, chain)
        emitter = self.scope.emitter
        frame = Frame(chain[-1], emitter.names)
        frame.names["node"] = "node"
        made = emitter.expr(value, (*chain, frame))
        assert callable(make)
        name = emitter.names.fresh("answer" if method == "settle_each" else "reasons_of")
        self.scope.here(chain).lines.append(code.function(name, ["node"], [*frame.lines, code.return_(make(made))]))
        self._do(method, chain, mask, *more, parts, code.name(name))

    def _do(self, method: str, chain: Chain, *arguments: ast.expr) -> None:
        here: Lines = self.scope.here(chain)
        here.lines.append(ast.Expr(code.method(RULING, method, *arguments)))
