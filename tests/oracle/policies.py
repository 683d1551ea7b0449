"""Random well-typed policies: one predicate and one priority, with functions, views and all statements.

Whatever is written here passes `ksp check` without an error; if it does not, the writer or the checker is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st
from tests.oracle.chooser import Chooser
from tests.oracle.expressions import (
    AMOUNTS,
    CLUSTER,
    CONSTANT,
    FEASIBLE,
    INTS,
    LABELS,
    NODE,
    POD,
    STRINGS,
    Callee,
    Kind,
    Name,
    Writer,
)

from ksp.check.program import Checker
from ksp.check.typed import Rule
from ksp.source.origin import Texts

DEPTH = 3
REFUSED = frozenset({"KSP0311", "KSP0401", "KSP0402", "KSP0403"})  # a constant score outside of 0 to 100, and limits
# What a text may say to users is nothing to those who compute it.
QUOTES_OTHERS = "KSP0312"

# Types that a `fn` takes and gives, as policies write them.
TYPES: dict[Kind, str] = {
    "int": "int", "string": "string", "bool": "bool", "double": "double", "Pod": "Pod", "Node": "Node",
    STRINGS: "list<string>", INTS: "list<int>", LABELS: "map<string, string>", "Taint": "Taint",
    ("list", "Toleration"): "list<Toleration>",
}  # fmt: skip
RESULTS: tuple[Kind, ...] = ("int", "bool", "string", "double", STRINGS, INTS, LABELS, "Taint", ("list", "Toleration"))
LETS: tuple[Kind, ...] = ("int", "string", "bool", STRINGS, INTS, LABELS, AMOUNTS, "double", "Taint", ("list", "Taint"))
KEYS: tuple[Kind, ...] = ("string", "string", "string", "int", "bool")
TERMS = ("requiredAffinity", "requiredAntiAffinity", "preferredAffinity", "preferredAntiAffinity")
ITEMS: tuple[Kind, ...] = ("AffinityTerm", "TopologySpreadConstraint", "string", "Toleration", "HostPort", "int")

PARAMETERS: tuple[tuple[Kind, str, object], ...] = (
    ("int", "int = 5", 9223372036854775800),
    ("int", "int", -7),
    ("string", 'string = "cpu"', "example.com/gpu"),
    (STRINGS, 'list<string> = ["app", "disk"]', ("kubernetes.io/hostname", "tier")),
    (INTS, "list<int> = []", (3, -4, 2**62)),
    (LABELS, 'map<string, string> = {"app": "web"}', {"app": "db", "a": "b"}),
    ("bool", "bool = true", False),
)


@dataclass(frozen=True)
class Policy:
    """A policy's text, and arguments for its rules beside the defaults."""

    text: str
    arguments: dict[str, object] = field(default_factory=dict)

    def rules(self) -> list[Rule]:
        """Its rules, checked: it has no errors, or they score or cost what none may, and it is no example."""
        checker = Checker(Texts({"random.ksp": self.text}))
        module = checker.check("random.ksp")
        assert module is not None
        errors = [
            (d.code, d.message, d.span.text)
            for d in checker.report.found
            if d.severity.value == "error" and d.code != QUOTES_OTHERS
        ]
        if errors and all(code in REFUSED for code, _, _ in errors):
            reject()
        assert not errors, f"{errors}\n{self.text}"
        return module.own_rules()


@st.composite
def policies(draw: Any) -> Policy:
    """A file with a predicate and a priority."""
    return PolicyWriter(Chooser(draw)).policy()


class PolicyWriter:
    """Writes a policy, line by line."""

    def __init__(self, choose: Chooser) -> None:
        self.choose = choose
        self.write = Writer(choose)
        self.lines: list[str] = []
        self.arguments: dict[str, object] = {}
        self.indent = 0

    def policy(self) -> Policy:
        if self.choose.chance(50):
            self.constant()
        if self.choose.chance(60):
            self.function(top=True)
        kinds = self.choose.pick((("predicate",), ("priority",), ("predicate", "priority")))
        for kind in kinds:
            callees = list(self.write.callees)
            with self.write.scope(Name("pod", "Pod", POD), Name("node", "Node", NODE)):
                self.rule(kind)
            self.write.callees = callees
        return Policy("\n".join(self.lines) + "\n", self.arguments)

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head + " {")
        self.indent += 1
        names, callees = list(self.write.names), list(self.write.callees)
        yield
        self.write.names, self.write.callees = names, callees
        self.indent -= 1
        self.line("}")

    # ---- declarations

    def constant(self) -> None:
        name, kind = self.write.fresh("c"), self.choose.pick(("int", "string", STRINGS, AMOUNTS))
        self.line(f"const {name} = {self.write.literal(kind)}")
        self.write.names.append(Name(name, kind, CONSTANT, computed=True))

    def let(self) -> None:
        kind = self.choose.pick(LETS)
        with self.write.reading(self.write.most):
            value = self.write.expr(kind, DEPTH)
            stage = self.write.reached
        name = self.write.fresh("v")
        self.line(f"let {name} = {value}")
        self.write.names.append(Name(name, kind, stage))

    def function(self, *, top: bool) -> None:
        """A `fn`: at the top of a file it sees its arguments, in a rule what the rule sees."""
        kinds = [self.choose.pick(tuple(TYPES)) for _ in range(self.choose.number(0, 2))]
        kinds += ["Pod", "Node"] if top else []
        parameters = [Name(self.write.fresh("a"), kind, CONSTANT) for kind in kinds]
        result, name = self.choose.pick(RESULTS), self.write.fresh("f")
        listed = ", ".join(f"{p.text}: {TYPES[p.kind]}" for p in parameters)
        head = f"fn {name}({listed}): {TYPES[result]}"
        loops = self.write.loops
        self.write.loops += 1
        with self.write.reading(POD if top else self.write.most), self.write.scope(*parameters):
            if self.choose.chance(40):
                first, kind = self.write.fresh("l"), self.choose.pick(LETS)
                before = self.write.expr(kind, DEPTH - 1)
                self.write.names.append(Name(first, kind, CONSTANT))
                self.line(f"{head} {{ let {first} = {before} return {self.write.expr(result, DEPTH - 1)} }}")
            else:
                self.line(f"{head} = {self.write.expr(result, DEPTH - 1)}")
            stage, deepest = self.write.reached, self.write.deepest
        self.write.loops = loops
        self.write.callees.append(Callee(name, tuple(kinds), result, max(stage, POD), deepest - loops))

    def parameter(self) -> None:
        kind, text, other = self.choose.pick(PARAMETERS)
        name = self.write.fresh("q")
        self.line(f"param {name}: {text}")
        self.write.names.append(Name(name, kind, CONSTANT))
        if self.choose.chance(50):
            self.arguments[name] = other

    # ---- rules

    def rule(self, kind: str) -> None:
        name = self.write.fresh("R")
        with self.block(f"{kind} {name}"):
            for _ in range(self.choose.number(0, 2)):
                self.parameter()
            for _ in range(self.choose.number(1, 5)):
                with self.write.reading(NODE):
                    self.predicate_part() if kind == "predicate" else self.priority_part()
            if kind == "priority":
                self.scores()

    def predicate_part(self) -> None:
        match self.choose.number(0, 11):
            case 0 | 1:
                self.deny()
            case 2 | 3:
                self.view()
            case 4:
                self.loop("deny")
            case 5:
                self.early("prefilter")
            case 6:
                with self.block("collect"):
                    for _ in range(self.choose.number(1, 3)):
                        self.statement("deny")
            case _:
                self.statement("deny")

    def priority_part(self) -> None:
        match self.choose.number(0, 5):
            case 0 | 1:
                self.view()
            case 2:
                self.early("prescore")
            case 3:
                self.loop("fail")
            case _:
                self.statement("fail")

    def early(self, word: str) -> None:
        """`prefilter` or `prescore`"""
        with self.block(word), self.write.reading(CLUSTER):
            for _ in range(self.choose.number(1, 2)):
                self.statement("deny" if word == "prefilter" else "fail")

    def statement(self, strongest: str, *, looped: int = 0) -> None:
        """One that may stand anywhere; in priorities there is no `deny` and no `stop`."""
        match self.choose.number(0, 9):
            case 0 | 1:
                self.let()
            case 2:
                self.function(top=False)
            case 3:
                self.fail()
            case 4 if strongest == "deny":
                self.line(f"stop when {self.condition()}")
            case 5 if looped < 2:
                self.loop(strongest, looped)
            case _ if strongest == "deny":
                self.deny()
            case _:
                self.fail()

    def deny(self) -> None:
        unresolvable = self.choose.pick(("", "unresolvable "))
        reasons = ", ".join(self.reason() for _ in range(self.choose.number(1, 2)))
        self.line(f"deny {unresolvable}{reasons} when {self.condition()}")

    def fail(self) -> None:
        self.line(f"fail {self.reason()} when {self.condition()} && {self.condition()}")

    def reason(self) -> str:
        return '"no"' if self.choose.chance(30) else self.write.text(1)

    def condition(self) -> str:
        return self.write.expr("bool", DEPTH)

    def loop(self, strongest: str, looped: int = 0) -> None:
        kind: Kind = self.choose.pick(
            (STRINGS, INTS, LABELS, AMOUNTS, ("list", "Container"), ("list", "Taint"), ("list", "Toleration"))
        )
        with self.write.reading(self.write.most):
            over, stage = self.write.expr(kind, 1), self.write.reached
        names = [Name(name.text, name.kind, stage) for name in self.write.variables(kind)]
        with self.block(f"for {', '.join(n.text for n in names)} in {over}"):
            self.write.names += names
            self.write.loops += 1
            for _ in range(self.choose.number(1, 2)):
                self.statement(strongest, looped=looped + 1)
            self.write.loops -= 1

    # ---- views

    def view(self, *, feasible: bool = False) -> None:
        row_kind = self.choose.pick(("Pod", "Pod", "Node"))
        row = self.write.fresh("r")
        relation = {"Pod": "cluster.pods", "Node": "cluster.nodes"}[row_kind]
        if feasible:
            relation, row_kind = "feasible", "Node"
        form = self.choose.pick(("count", "count", "sum", "first"))
        name = self.write.fresh("w")
        with self.write.reading(FEASIBLE if feasible else POD), self.write.scope(Name(row, row_kind, POD)):
            self.write.callees, callees = [c for c in self.write.callees if c.stage <= POD], self.write.callees
            self.write.scores, scores = self.write.scores and feasible, self.write.scores
            text, kind = self.rows(name, form, row, relation, row_kind, feasible=feasible)
            self.write.callees, self.write.scores = callees, scores
        self.line(text)
        # One over `feasible` can be read as late as a node is: by no other view.
        self.write.names.append(Name(name, kind, NODE if feasible else CLUSTER))

    def rows(self, name: str, form: str, row: str, relation: str, row_kind: str, *, feasible: bool) -> tuple[str, Kind]:
        binds = [f"{row} in {relation}"]
        if form != "first":
            binds += [self.join(row, row_kind) for _ in range(self.choose.number(0, 2))]
        conditions = self.conditions(row, row_kind)
        where = f" where {' && '.join(conditions)}" if conditions else ""
        if form == "first":
            return f"view {name} = first {binds[0]}{where}", row_kind
        keys, amount = self.keys(row, row_kind), "int"
        head = "count "
        if form == "sum":
            amount = "double" if feasible and self.choose.chance(40) else "int"
            head = f"sum {self.write.expr(amount, 2)} for "
        kind: Kind = amount
        for _, key in reversed(keys):
            kind = ("map", key, kind)
        by = f" by {', '.join(text for text, _ in keys)}" if keys else ""
        return f"view {name} = {head}{', '.join(binds)}{where}{by}", kind

    def join(self, row: str, row_kind: str) -> str:
        item = self.write.fresh("r")
        if row_kind == "Pod" and self.choose.chance(40):
            kind: Kind = "AffinityTerm"
            over = f"{row}.{self.choose.pick(TERMS)}"
        else:
            kind = self.choose.pick(ITEMS)
            over = self.write.expr(("list", kind), 2)
        self.write.names.append(Name(item, kind, POD))
        return f"{item} in {over}"

    def conditions(self, row: str, row_kind: str) -> list[str]:
        found = []
        if row_kind == "Pod" and self.choose.chance(30):
            found.append(self.choose.pick((f"{row}.namespace == pod.namespace", f"pod.namespace == {row}.namespace")))
        if self.choose.chance(15):
            found.append(
                f"{row}.namespace == {self.write.expr('string', 1)}" if row_kind == "Pod" else f"{row}.podCount > 0"
            )
        if self.choose.chance(50):
            found.append(self.write.expr("bool", DEPTH))
        return found

    def keys(self, row: str, row_kind: str) -> list[tuple[str, Kind]]:
        found: list[tuple[str, Kind]] = []
        node = f"{row}.node" if row_kind == "Pod" else row
        for _ in range(self.choose.number(0, 2)):
            match self.choose.number(0, 2):
                case 0:
                    found.append((f"{node}.name", "string"))
                case 1:
                    found.append((f"{node}.labels[{self.write.short('string')}]", "string"))
                case _:
                    kind = self.choose.pick(KEYS)
                    found.append((self.write.expr(kind, 2), kind))
        return found

    # ---- scores

    def scores(self) -> None:
        with self.write.reading(NODE):
            self.line(f"score {self.write.expr('int', DEPTH)}")
        match self.choose.number(0, 4):
            case 0:
                self.line("normalize")
            case 1:
                self.line("normalize reversed")
            case 2 | 3:
                with self.block("normalize"):
                    self.normalize()

    def normalize(self) -> None:
        self.write.scores = True
        names = (Name("feasible", ("list", "Node"), FEASIBLE), Name("node.score", "int", NODE))
        with self.write.scope(*names), self.write.reading(NODE):
            for _ in range(self.choose.number(0, 3)):
                if self.choose.chance(50):
                    self.view(feasible=self.choose.chance(70))
                else:
                    self.let()
            self.line(f"score {self.write.expr('int', DEPTH)}")
        self.write.scores = False
