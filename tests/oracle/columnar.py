"""Random rules of the kind that columns are for: sums and products of what nodes have, looked up in views by names and
labels, with `deny`, `fail` and `stop` at every place.

Rules of `tests.oracle.policies` are of all kinds, and most of them say the same of every node; these do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from tests.oracle.chooser import Chooser
from tests.oracle.clusters import HOSTNAME, ZONE
from tests.oracle.policies import Policy

KEYS: Final = (ZONE, "disk", "app", HOSTNAME)
TEXTS: Final = ("", "a", "b", "ssd", "hdd", "web", "5", "n1")
RESOURCES: Final = ("cpu", "memory", "example.com/gpu", "pods")
INTS: Final = ("0", "1", "2", "-1", "7", "100", "9223372036854775807", "-9223372036854775808", "4611686018427387904")
DOUBLES: Final = ("0.0", "1.0", "-2.5", "0.5", "1e300", "100.0", "3.1e-9")

VIEWS: Final = (
    ("view w = count p in cluster.pods by p.node.name", ("w[node.name]",)),
    (
        f'view w = count p in cluster.pods where p.namespace == pod.namespace by p.node.labels["{ZONE}"]',
        (f'w[node.labels["{ZONE}"]]', "w.values().max(0)", 'w["a"]', "size(w)"),
    ),
    (
        'view w = sum p.requests[q] for p in cluster.pods where p.labels["app"] == pod.labels["app"] by p.node.name',
        ("w[node.name]", 'w["n1"]', "w.values().min(0)", "w.values().sum()"),
    ),
    ("view w = sum n.allocatable[q] for n in cluster.nodes", ("w",)),
    (
        f'view w = count p in cluster.pods by p.labels["app"], p.node.labels["{ZONE}"]',
        (f'w["web"][node.labels["{ZONE}"]]', f'w[node.labels["app"]][node.labels["{ZONE}"]]', "size(w)"),
    ),
    (
        """view w = count p in cluster.pods, t in p.requiredAntiAffinity where t.matches(pod)
             by t.topologyKey, p.node.labels[t.topologyKey]""",
        ("w[k][node.labels[k]]", f'w["{HOSTNAME}"][node.labels["{HOSTNAME}"]]', "size(w)"),
    ),
    (
        'view w = sum n.images["web:latest"] / 1Mi for n in cluster.nodes where n.podCount < 2 by n.labels["disk"]',
        ('w["ssd"]',),
    ),
)  # fmt: skip


@st.composite
def columnar_policies(draw: Any) -> Policy:
    """A file with one predicate or priority."""
    return ColumnarWriter(Chooser(draw)).policy()


class ColumnarWriter:
    """Writes a rule. `ints`, `doubles` and `bools` are names in scope."""

    def __init__(self, choose: Chooser) -> None:
        self.choose = choose
        self.count = 0
        self.collecting = False
        self.ints: list[str] = []
        self.doubles: list[str] = []
        self.bools: list[str] = []
        self.looped = 0

    def policy(self) -> Policy:
        predicate = self.choose.chance(60)
        lines = ['param q: string = "memory"', f'param k: string = "{ZONE}"']
        if self.choose.chance(70):
            view, reads = self.choose.pick(VIEWS)
            lines.append(view)
            self.ints += reads
        lines += [self.statement(deny=predicate) for _ in range(self.choose.number(1, 5))]
        if not predicate:
            lines += self.score()
        body = "\n  ".join(lines)
        given: dict[str, object] = {"q": self.choose.pick(RESOURCES), "k": self.choose.pick(KEYS)}
        return Policy(f"{'predicate' if predicate else 'priority'} P {{\n  {body}\n}}\n", given)

    def score(self) -> list[str]:
        lines = [f"score {self.number(3)}"]
        form = self.choose.pick(("", "normalize", "normalize reversed", "block", "block"))
        if form != "block":
            return [*lines, form] if form else lines
        before = list(self.ints), list(self.doubles), list(self.bools)
        zone = f'n.labels["{ZONE}"]'
        view = f'view z = sum n.score for n in feasible where "{ZONE}" in n.labels by {zone}'
        self.ints += [f'z[node.labels["{ZONE}"]]', "z.values().max(0)", "size(feasible)"]
        self.ints += ["feasible.map(n, n.score).max(0)", "feasible.map(n, n.score).sum()", "node.score", "node.score"]
        inner = [view, *(self.let() for _ in range(self.choose.number(0, 2))), f"score {self.number(2)}"]
        self.ints, self.doubles, self.bools = before
        return [*lines, "normalize {", *inner, "}"]

    # ---- statements

    def statement(self, *, deny: bool) -> str:
        match self.choose.number(0, 9):
            case 0 | 1 if not self.collecting:
                return self.let()
            case 2:
                return f"fail {self.reason()} when {self.condition(1)} && {self.condition(1)}"
            case 3 if deny:
                return f"stop when {self.condition(1)}"
            case 4 | 5 if self.looped < 2:
                return self.loop(deny=deny)
            case 6 if deny and not self.collecting and self.looped == 0:
                self.collecting = True
                inner = [self.statement(deny=True) for _ in range(self.choose.number(1, 3))]
                self.collecting = False
                return f"collect {{ {' '.join(inner)} }}"
        if not deny:
            return f"fail {self.reason()} when {self.condition(1)} && {self.condition(2)}"
        unresolvable = self.choose.pick(("", "unresolvable "))
        return f"deny {unresolvable}{self.reason()} when {self.condition(2)}"

    def let(self) -> str:
        self.count += 1
        name = f"v{self.count}"
        kind = self.choose.pick(("int", "int", "double", "bool"))
        text = {"int": self.number, "double": self.double, "bool": self.condition}[kind](2)
        {"int": self.ints, "double": self.doubles, "bool": self.bools}[kind].append(name)
        return f"let {name} = {text}"

    def loop(self, *, deny: bool) -> str:
        """Over what is known before any node is, or is of the node itself."""
        self.count += 1
        x = f"x{self.count}"
        over, ints, bools = self.choose.pick(
            (
                (f'{x} in ["{ZONE}", "disk", "cpu"]', (f"node.allocatable[{x}]",), (f"{x} in node.labels",)),
                (f"{x}, y{x} in pod.requests", (f"y{x}", f"node.requested[{x}]"), (f"{x} in node.allocatable",)),
                (f"{x} in pod.spec.tolerations", (f"size({x}.key)",), (f'{x}.effect == "NoSchedule"',)),
                (
                    f"{x} in node.spec.taints",
                    (f"size({x}.value)",),
                    (f'{x}.effect == "NoSchedule"', f"pod.spec.tolerations.exists(o, o.tolerates({x}))"),
                ),
                (f"{x} in [1, -1, 0]", (x, x), (f"{x} > 0",)),
            )
        )
        before = list(self.ints), list(self.doubles), list(self.bools)
        self.ints += [*ints, *ints]
        self.bools += [*bools, *bools]
        self.looped += 1
        inner = [self.statement(deny=deny) for _ in range(self.choose.number(1, 2))]
        self.looped -= 1
        self.ints, self.doubles, self.bools = before
        return f"for {over} {{ {' '.join(inner)} }}"

    def reason(self) -> str:
        named = [name for name in (*self.ints, *self.doubles) if name[0] == "v"]
        options = ['"no"', '"no"', '"${node.name}"', '"${node.podCount} pods"', '"in ${node.spec.unschedulable}"']
        return self.choose.pick([*options, *(f'"${{{name}}}"' for name in named)])

    # ---- expressions

    def number(self, depth: int) -> str:
        if depth <= 0 or self.choose.chance(15):
            return self.varying()
        d = depth - 1
        match self.choose.number(0, 10):
            case 0 | 1 | 2:
                operator = self.choose.pick(("+", "-", "*"))
                other = self.choose.pick(INTS) if self.choose.chance(30) else self.number(d)
                return f"({self.number(d)} {operator} {other})"
            case 3:
                return (
                    f"{self.choose.pick(('min', 'max'))}({self.number(d)}, {self.choose.pick((self.number(d), '3'))})"
                )
            case 4:
                return f"({self.condition(d)} ? {self.number(d)} : {self.number(d)})"
            case 5:
                return f"div({self.number(d)}, {self.number(d)}, {self.choose.pick(INTS)})"
            case 6:
                divisor, operator = self.varying(), self.choose.pick(("/", "%"))
                return f"({divisor} != 0 ? {self.number(d)} {operator} {divisor} : {self.number(d)})"
            case 7:
                return f"({self.number(d)} {self.choose.pick(('/', '%'))} {self.choose.pick(('-1', '7', '-3'))})"
            case 8:
                return f"{self.choose.pick(('int', 'round'))}({self.double(d)})"
            case 9:
                return self.choose.pick((f"abs({self.number(d)})", f"(-{self.number(d)})"))
        each = self.choose.pick(
            ("node.allocatable[r] - node.requested[r]", "node.allocatable[r] * 3", "node.requested[r]")
        )
        over = self.choose.pick(('["cpu", "memory"]', '["pods", "example.com/gpu", q]'))
        return f"{over}.map(r, {each}).{self.choose.pick(('sum()', 'max(0)', 'min(-1)'))}"

    def varying(self) -> str:
        known = [
            "node.podCount", "node.allocatable[q]", "node.requested[q]", "node.nonzeroRequested[q]",
            'node.allocatable["example.com/gpu"]', "node.allocatable.pods", "pod.requests[q]", "pod.spec.priority",
            "(node.images[pod.spec.containers[0].image] / 1Mi)", "size(node.spec.taints)", "size(node.images)",
            "size(node.hostPorts)", "int(node.labels[k])",
        ]  # fmt: skip
        return self.choose.pick((*known, *self.ints, *self.ints, *self.ints))

    def double(self, depth: int) -> str:
        if depth <= 0 or self.choose.chance(10):
            return self.choose.pick((f"double({self.varying()})", *self.doubles, *self.doubles))
        d = depth - 1
        match self.choose.number(0, 6):
            case 0 | 1:
                other = self.choose.pick(DOUBLES) if self.choose.chance(40) else self.double(d)
                return f"({self.double(d)} {self.choose.pick(('+', '-', '*'))} {other})"
            case 2:
                return f"div({self.double(d)}, {self.double(d)}, {self.choose.pick(DOUBLES)})"
            case 3:
                return f"{self.choose.pick(('ln', 'sqrt', 'abs', '-'))}({self.double(d)})"
            case 4:
                return f"{self.choose.pick(('min', 'max'))}({self.double(d)}, {self.double(d)})"
            case 5:
                return f"({self.condition(d)} ? {self.double(d)} : {self.double(d)})"
        return f'["cpu", q].map(r, div(double(node.requested[r]), double(node.allocatable[r]), {self.double(0)})).sum()'

    def condition(self, depth: int) -> str:
        if depth <= 0:
            return self.choose.pick((*self.plain(), *self.bools, *self.bools))
        d = depth - 1
        match self.choose.number(0, 6):
            case 0 | 1 | 2:
                other = self.choose.pick(INTS) if self.choose.chance(40) else self.number(d)
                return f"({self.number(d)} {self.choose.pick(('<', '<=', '>', '>=', '==', '!='))} {other})"
            case 3:
                other = self.choose.pick(DOUBLES) if self.choose.chance(40) else self.double(d)
                return f"({self.double(d)} {self.choose.pick(('<', '<=', '>', '>=', '==', '!='))} {other})"
            case 4:
                return f"({self.condition(d)} {self.choose.pick(('&&', '||'))} {self.condition(d)})"
            case 5:
                return f"!({self.condition(d)})"
        return f"({self.condition(d)} ? {self.condition(d)} : {self.condition(d)})"

    def plain(self) -> Sequence[str]:
        key, text, other = self.choose.pick(KEYS), self.choose.pick(TEXTS), self.choose.pick(TEXTS)
        label = f'node.labels["{key}"]'
        made: Sequence[Callable[[], str]] = (
            lambda: f'({label} {self.choose.pick(("==", "!=", "<", ">="))} "{text}")',
            lambda: f'({label} in ["{text}", "{other}"])',
            lambda: f"({label} == pod.spec.nodeSelector[k])",
            lambda: f"({label} {self.choose.pick(('==', '!='))} node.labels[k])",
            lambda: f'("{key}" in node.labels)',
            lambda: "(k in node.labels)",
            lambda: f'{label}.startsWith("{text}")',
            lambda: "node.spec.unschedulable",
            lambda: "(q in node.allocatable)",
            lambda: "(node.name == pod.name)",
            lambda: '(pod.spec.nodeName != "" && pod.spec.nodeName != node.name)',
            lambda: "node.spec.taints.exists(t, !pod.spec.tolerations.exists(o, o.tolerates(t)))",
            lambda: "pod.spec.nodeSelector.all(a, b, a in node.labels && node.labels[a] == b)",
            lambda: "pod.requests.exists(a, b, b > node.allocatable[a] - node.requested[a])",
            lambda: "node.hostPorts.exists(a, pod.hostPorts.exists(b, a.port == b.port))",
            lambda: "pod.spec.containers.exists(c, c.image in node.images)",
            lambda: f'(size(node.labels) > 2 && node.annotations.exists(a, a == "{text}"))',
            lambda: "selector(pod.spec.nodeSelector).matches(node.labels)",
        )
        return [self.choose.pick(made)()]
