"""The code of a rule: one Python function, nested by stage.

    def RULE(parameters...):                      once, when the policy is loaded
        def prepare(pod, cluster):                once for each pod: (key, at)
            def VIEW_of(row): ...                 what a row contributes to a view
            def at(views):                        once for each state of the views
                def check(node): ...              for each node of a predicate: None, a Denial or a Failure
                def score(node): ...              of a priority: the node's score, or a Failure
                def scores(feasible): ...         in its place, if scores depend on which nodes are feasible
                def normalize(feasible, raw): ... of a priority: the scores from 0 to 100

`key` is the rule's equivalence key: the values that `at` reads of what depends on the pod alone, so that `at` is as
good for any other pod with an equal key. What a rule decides before it looks at nodes, or that no node can be denied,
is decided in `prepare` where the pod tells it, and else in `at`. `at` gives, as last, what its functions read of the
views: while that is the same, they give the same answers for nodes that read the same entries of views.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ksp.check.stages import stage_of
from ksp.check.typed import (
    Constant,
    Expr,
    Rule,
    Stage,
)
from ksp.compile import code
from ksp.compile.columns.generate import ColumnCode
from ksp.compile.emit import Chain, Emitter
from ksp.compile.places import Frame
from ksp.compile.possible import Possible
from ksp.compile.priorities import PriorityCode
from ksp.compile.statements import NONE, Returning, StatementCode
from ksp.compile.views import ViewCode


class RuleCode:
    """Makes the code of one rule."""

    def __init__(self, rule: Rule, *, traced: bool = False) -> None:
        self.rule = rule
        self.emitter = Emitter(traced=traced)
        self.emitter.view_code = ViewCode(self.emitter, rule)
        self.code = StatementCode(rule, self.emitter)
        self.columns = ColumnCode(rule, self.emitter)

    def close(self) -> None:
        """All is made. What it was made with is in a circle, which the garbage collector alone would find."""
        self.emitter.view_code = None

    def function(self) -> ast.FunctionDef:
        names = self.emitter.names
        top = Frame(None, names)
        for parameter in self.rule.parameters:
            top.names[parameter.binding] = names.fresh(parameter.binding.name)
        pod = Frame(top, names)
        pod.names.update({"pod": "pod", "cluster": "cluster"})
        at = Frame(pod, names)
        at.names["views"] = "views"
        self.code.learn((*self.rule.before, *self.rule.body))
        self._before(top, pod, at)
        if self.rule.kind == "predicate":
            self._predicate((top, pod, at))
        else:
            answers = PriorityCode(self.code, self.columns).functions((top, pod, at))
            at.lines.append(code.return_(code.tuple_of([NONE, *answers, self._shared(at)])))
        made = code.function("at", ["views"], at.lines)
        pod.lines += [made, code.return_(code.tuple_of([self._key(pod, made), code.name("at")]))]
        top.lines += [code.function("prepare", ["pod", "cluster"], pod.lines), code.return_(code.name("prepare"))]
        parameters = [top.names[p.binding] for p in self.rule.parameters]
        return code.function(
            names.fresh(self.rule.name), [*parameters, *(("trace",) if self.emitter.traced else ())], top.lines
        )

    def _before(self, top: Frame, pod: Frame, at: Frame) -> None:
        """What `prefilter` or `prescore` say: with the pod, unless they read views."""
        if self.code.stage(self.rule.before) <= Stage.POD:
            self.code.returning = Returning.PREPARED
            self.code.statements(self.rule.before, (top, pod), pod)
        else:
            self.code.returning = Returning.BOUND
            self.code.statements(self.rule.before, (top, pod, at), at)
        self.code.returning = Returning.ANSWER

    def _key(self, pod: Frame, at: ast.FunctionDef) -> ast.expr:
        """The values that `at` reads of the pod's frame, but for what follows the state by itself."""
        values: list[ast.expr] = []
        for name in sorted(code.read_in([at]) & (assigned_in(pod.lines) | {"pod"})):
            if name == "pod" or name in self.emitter.with_objects:
                values.append(code.call("_identity", code.name(name)))
            elif name not in self.emitter.live:
                values.append(code.name(name))
        return code.tuple_of(values)

    def _shared(self, at: Frame) -> ast.expr:
        """The values that the functions of `at` read of its frame."""
        functions = [line for line in at.lines if isinstance(line, ast.FunctionDef)]
        return code.tuple_of(
            [
                code.call("_witness", code.name(name)) if name in self.emitter.with_objects else code.name(name)
                for name in sorted(code.read_in(functions) & assigned_in(at.lines))
            ]
        )

    def _predicate(self, chain: Chain) -> None:
        at = chain[-1]
        assert isinstance(at, Frame)
        if self._admits_all(chain):
            return
        frame = Frame(at, self.emitter.names)
        frame.names["node"] = "node"
        self.code.statements(self.rule.body, (*chain, frame), frame)
        frame.lines.append(code.return_(NONE))
        at.lines.append(code.function("check", ["node"], frame.lines))
        column = self.columns.predicate(chain)
        at.lines.append(code.return_(code.tuple_of([NONE, code.name("check"), column, self._shared(at)])))

    def _admits_all(self, chain: Chain) -> bool:
        """Guards for what no node can be denied: by the pod, then by the views; whether that is always so."""
        _, pod, at = chain
        assert isinstance(pod, Frame)
        assert isinstance(at, Frame)
        by_pod = self.code.may_fire(self.rule.body, Possible(_with_the_pod, self.emitter.lets))
        if isinstance(by_pod, Constant) and not by_pod.value:
            at.lines.append(self.code.outcome(NONE))
            return True
        if not isinstance(by_pod, Constant):
            guard = code.not_(self.emitter.expr(by_pod, chain[:2]))
            # What `prefilter` says stands in `at`, if it is not said yet.
            place, answer = (at, self.code.outcome(NONE)) if at.lines else (pod, self.code.prepared(NONE))
            place.lines.append(code.if_(guard, [answer]))
        possible = self.code.may_fire(self.rule.body, Possible(lets=self.emitter.lets))
        if isinstance(possible, Constant):
            return False
        if stage_of(possible) > Stage.POD:
            at.lines.append(code.if_(code.not_(self.emitter.expr(possible, chain)), [self.code.outcome(NONE)]))
        return False


def assigned_in(lines: Sequence[ast.stmt]) -> set[str]:
    """The names of values that a function's own lines compute."""
    targets = (target for line in lines if isinstance(line, ast.Assign) for target in line.targets)
    return {target.id for target in targets if isinstance(target, ast.Name)} - {"reasons", "unresolvable"}


def _with_the_pod(expr: Expr) -> bool:
    return stage_of(expr) <= Stage.POD
