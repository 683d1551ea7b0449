"""Random well-typed expressions of the language, as text.

A type is a name (`int`, `string`, `Taint`), or `("list", T)`, or `("map", K, V)`. A `Writer` knows the names in scope
with their types and stages, and writes an expression of a wanted type from them; `most` bounds the stage of what it may
read. Quantities stand in whole conditions only (see `PARTS`), so that every `int` here is a plain one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.oracle.chooser import Chooser

Kind = str | tuple["Kind", ...]

CONSTANT, POD, CLUSTER, FEASIBLE, NODE = range(5)
STRINGS: Kind = ("list", "string")
INTS: Kind = ("list", "int")
LABELS: Kind = ("map", "string", "string")
AMOUNTS: Kind = ("map", "string", "int")

# How a value of a type is read from a value of another.
PARTS: dict[Kind, list[tuple[Kind, str]]] = {
    "string": [
        ("Pod", "{}.name"), ("Pod", "{}.namespace"), ("Pod", "{}.spec.nodeName"), ("Pod", "{}.affinityError"),
        ("Node", "{}.name"), ("Taint", "{}.key"), ("Taint", "{}.effect"), ("Toleration", "{}.key"),
        ("Toleration", "{}.operator"), ("Container", "{}.image"), ("HostPort", "{}.ip"),
        ("AffinityTerm", "{}.topologyKey"),
        ("TopologySpreadConstraint", "{}.topologyKey"), ("TopologySpreadConstraint", "{}.whenUnsatisfiable"),
        ("Service", "{}.name"), ("LabelSelector", "{}.error"), ("ResourceSpec", "{}.name"),
    ],
    "int": [
        ("Pod", "{}.spec.priority"), ("Node", "{}.podCount"), ("Node", "{}.allocatable.pods"), ("HostPort", "{}.port"),
        ("AffinityTerm", "{}.weight"), ("TopologySpreadConstraint", "{}.maxSkew"), ("ResourceSpec", "{}.weight"),
        ("Pod", "cluster.priorityClasses[{}.namespace].value"),
        ("Pod", 'cluster.podDisruptionBudgets[{}.namespace]["s0"].status.disruptionsAllowed'),
    ],
    "bool": [
        ("Pod", "{}.terminating"), ("Node", "{}.spec.unschedulable"), ("Pod", "has({}.spec.affinity)"),
        ("Pod", "has({}.spec.priority)"), ("Pod", "has({}.labels)"), ("Pod", "has({}.node)"), ("Pod", "has({}.spec)"),
        ("Pod", "has({}.spec.affinity.nodeAffinity)"), ("Pod", "has({}.name)"), ("Service", "has({}.spec.selector)"),
        ("TopologySpreadConstraint", "has({}.labelSelector)"), ("LabelSelector", "{}.isEmpty()"),
        ("Node", "({}.allocatable.cpu > 600m)"), ("Pod", "({}.requests.memory + 1Mi >= 200Mi)"),
        ("Node", "({0}.allocatable.cpu - {0}.requested.cpu < 1cpu)"), ("Node", '({}.images["web:latest"] * 2 > 1Gi)'),
        ("Container", "({}.resources.requests.cpu > 100m)"),
    ],
    "Node": [("Pod", "{}.node")],
    "LabelSelector": [
        ("TopologySpreadConstraint", "{}.labelSelector"), ("AffinityTerm", "{}.selector"),
        ("Pod", 'cluster.podDisruptionBudgets[{}.namespace]["s0"].spec.selector'),
    ],
    STRINGS: [
        ("Pod", "{}.claimNames"),
        ("AffinityTerm", "{}.namespaces"), (LABELS, "{}.keys()"), (AMOUNTS, "{}.keys()"), (LABELS, "{}.values()"),
    ],
    INTS: [(AMOUNTS, "{}.values()")],
    LABELS: [
        ("Pod", "{}.labels"), ("Node", "{}.labels"), ("Pod", "{}.spec.nodeSelector"), ("Service", "{}.spec.selector"),
        ("Pod", "cluster.namespaces[{}.namespace].labels"),
    ],
    AMOUNTS: [
        ("Pod", "{}.requests"), ("Pod", "{}.nonzeroRequests"), ("Node", "{}.allocatable"), ("Node", "{}.requested"),
        ("Container", "{}.resources.requests"),
    ],
    ("list", "Taint"): [("Node", "{}.spec.taints")],
    ("list", "Toleration"): [("Pod", "{}.spec.tolerations")],
    ("list", "Container"): [("Pod", "{}.spec.containers")],
    ("list", "HostPort"): [("Pod", "{}.hostPorts"), ("Node", "{}.hostPorts")],
    ("list", "AffinityTerm"): [
        ("Pod", "{}.requiredAffinity"), ("Pod", "{}.requiredAntiAffinity"), ("Pod", "{}.preferredAffinity"),
        ("Pod", "{}.preferredAntiAffinity"),
    ],
    ("list", "TopologySpreadConstraint"): [("Pod", "{}.spec.topologySpreadConstraints")],
    ("list", "Service"): [("string", "cluster.services[{}].values()")],
    ("list", "ResourceSpec"): [],
}  # fmt: skip
STRUCTS = ("Taint", "Toleration", "Container", "HostPort", "AffinityTerm", "TopologySpreadConstraint", "Service")
LISTS: tuple[Kind, ...] = (STRINGS, INTS, *(("list", name) for name in STRUCTS))

INT_LITERALS = (
    "0",
    "1",
    "2",
    "3",
    "7",
    "100",
    "-1",
    "-5",
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
)
STRING_LITERALS = (
    '"web"', '""', '"app"', '"a"', '"default"', '"topology.kubernetes.io/zone"', '"kubernetes.io/hostname"',
    '"NoSchedule"',
    '"cpu"', '"a,b"', '"é✓𝄞"', r'"\n\""', 'r"\\d"', '"5"', '" x "', '"n1"',
)  # fmt: skip
RESOURCES = ('"pods"', '"nvidia.com/gpu"', '"kubernetes.io/hostname"')  # keys of amounts without a dimension
DOUBLE_LITERALS = ("0.0", "1.0", "0.5", "-2.5", "1e300", "100.0", "3.1e-9")
PATTERNS = ('"^n[0-9]$"', 'r"[aeiou]"', '"web|db"', '""', r'r"(?i)APP"')


@dataclass(frozen=True)
class Name:
    """A name in scope."""

    text: str
    kind: Kind
    stage: int
    computed: bool = False  # by the checker: a constant


@dataclass(frozen=True)
class Callee:
    """A `fn`. `loops` is how deeply it loops."""

    text: str
    parameters: tuple[Kind, ...]
    result: Kind
    stage: int
    loops: int


class Writer:
    """Writes expressions. `reached` is the highest stage of what was read since it was last set to 0."""

    def __init__(self, choose: Chooser) -> None:
        self.choose = choose
        self.names: list[Name] = []
        self.callees: list[Callee] = []
        self.most = CONSTANT
        self.reached = CONSTANT
        self.loops = 0
        self.deepest = 0
        self.scores = False
        self.count = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    @contextmanager
    def scope(self, *names: Name) -> Iterator[None]:
        """More names, for a while."""
        before = list(self.names)
        self.names += names
        yield
        self.names = before

    # ---- any type

    def expr(self, kind: Kind, depth: int) -> str:
        """An expression of the type; the deeper, the longer it may be."""
        if depth <= 0 or self.choose.chance(15):
            return self.short(kind)
        options = [*self.common(kind), *self.own(kind)]
        return self.choose.pick(options)(depth - 1)

    def short(self, kind: Kind) -> str:
        """A name, a literal or a path."""
        found = [name for name in self.names if name.kind == kind and name.stage <= self.most]
        if found and (kind == "Pod" or self.choose.chance(65)):
            return self.named(self.choose.pick(found))
        if self.choose.chance(60) and self.parts(kind):
            return self.path(kind)
        return self.literal(kind) or self.path(kind)

    def named(self, name: Name) -> str:
        self.reached = max(self.reached, name.stage)
        return name.text

    def literal(self, kind: Kind) -> str:
        match kind:
            case "int":
                return self.choose.pick(INT_LITERALS)
            case "string":
                return self.choose.pick(STRING_LITERALS)
            case "double":
                return self.choose.pick(DOUBLE_LITERALS)
            case "bool":
                return self.choose.pick(("true", "false"))
            case ("list", "string" | "int" | "double" as item):
                return f"[{', '.join(self.literal(item) for _ in range(self.choose.number(1, 3)))}]"
            case ("map", "string", "string" | "int" as value):
                known = RESOURCES if kind == AMOUNTS else STRING_LITERALS
                keys = dict.fromkeys(self.choose.pick(known) for _ in range(self.choose.number(1, 2)))
                return f"({{{', '.join(f'{key}: {self.literal(value)}' for key in keys)}}})"
        return ""

    def path(self, kind: Kind) -> str:
        """The shortest way to a value of a type that has no literals."""
        if kind in STRUCTS:
            return f"{self.short(('list', kind))}[{self.choose.pick(('0', '1', '-1'))}]"
        parts = self.parts(kind)
        if not parts:
            raise AssertionError(f"no way to {kind}")
        source, text = self.choose.pick(parts)
        return text.format(self.short(source))

    def parts(self, kind: Kind) -> list[tuple[Kind, str]]:
        """From what, and how, a value of the type can be read here."""
        scores: list[tuple[Kind, str]] = [("Node", "{}.score")] if kind == "int" and self.scores else []
        missing = [source for source in ("Pod", "ResourceSpec") if not self.has(source)]
        return [part for part in (*PARTS.get(kind, ()), *scores) if part[0] not in missing]

    def has(self, kind: Kind) -> bool:
        return any(name.kind == kind and name.stage <= self.most for name in self.names)

    def common(self, kind: Kind) -> list[Callable[[int], str]]:
        """What every type can be made of."""
        options: list[Callable[[int], str]] = [lambda _: self.short(kind)]
        parts = self.parts(kind)
        if parts:
            options.append(lambda d: self.part(parts, d))
        if kind not in ("Pod", "Node"):
            options.append(lambda d: f"({self.expr('bool', d)} ? {self.expr(kind, d)} : {self.expr(kind, d)})")
        callees = [c for c in self.callees if c.result == kind and c.stage <= self.most and c.loops + self.loops <= 2]
        if callees:
            options.append(lambda d: self.call(self.choose.pick(callees), d))
        holders = [n for n in self.names if n.stage <= self.most and holds(n.kind, kind)]
        if holders:
            options.append(lambda d: self.element(self.choose.pick(holders), kind, d))
        return options

    def part(self, parts: list[tuple[Kind, str]], depth: int) -> str:
        source, text = self.choose.pick(parts)
        return text.format(self.expr(source, min(depth, 1) if "{0}" in text else depth))

    def call(self, callee: Callee, depth: int) -> str:
        self.reached = max(self.reached, callee.stage)
        self.deepest = max(self.deepest, self.loops + callee.loops)
        return f"{callee.text}({', '.join(self.expr(kind, depth - 1) for kind in callee.parameters)})"

    def element(self, name: Name, wanted: Kind, depth: int) -> str:
        """An element of a list or map that has a name, or of a map in it."""
        text, kind = self.named(name), name.kind
        while kind != wanted:
            text += f"[{self.key('int' if kind[0] == 'list' else kind[1], depth)}]"
            kind = kind[-1]
        return text

    def key(self, kind: Kind, depth: int) -> str:
        """A key; as a string none that is constant, since the name of a resource tells its dimension."""
        return self.varying("string", depth) if kind == "string" else self.expr(kind, depth)

    def varying(self, kind: Kind, depth: int) -> str:
        """An int or string that the checker does not compute."""
        found = [n for n in self.names if n.kind == kind and n.stage <= self.most and not n.computed]
        if found and self.choose.chance(40):
            return self.named(self.choose.pick(found))
        if kind == "int":
            return f"size({self.expr('string', min(depth, 1))})" if depth <= 0 else self.arithmetic(depth)
        parts = self.parts("string")
        return self.part(parts, max(depth, 1))

    # ---- each type

    def own(self, kind: Kind) -> list[Callable[[int], str]]:
        """What only this type can be made of."""
        match kind:
            case "int":
                return [self.arithmetic, self.guarded, self.int_call, self.arithmetic, self.guarded]
            case "bool":
                return [self.comparison, self.logic, self.containment, self.bool_call, self.macro, self.macro]
            case "string":
                return [self.text, self.string_call]
            case "double":
                return [self.double]
            case ("list", _):
                return self.list_options(kind)
            case ("map", "string", "string" | "int"):
                return [lambda d: self.filtered(kind, d)]
            case "LabelSelector":
                return [lambda d: f"selector({self.expr(LABELS, d)})"]
        return [lambda d: f"{self.expr(('list', kind), d)}[{self.expr('int', d)}]"] if kind in STRUCTS else []

    def arithmetic(self, depth: int) -> str:
        d = depth - 1
        match self.choose.number(0, 5):
            case 0:
                return f"(-{self.varying('int', d)})"
            case 1:
                divisor = self.choose.pick(("7", "-3", "1", "-1"))
                return f"({self.varying('int', d)} {self.choose.pick(('/', '%'))} {divisor})"
            case 2:
                return f"({self.expr('int', d)} {self.choose.pick(('+', '-', '*'))} {self.varying('int', d)})"
        return f"({self.varying('int', d)} {self.choose.pick(('+', '-', '*'))} {self.expr('int', d)})"

    def guarded(self, depth: int) -> str:
        d = depth - 1
        divisor, dividend, other = self.varying("int", min(d, 1)), self.expr("int", d), self.expr("int", d)
        operator = self.choose.pick(("/", "%"))
        match self.choose.number(0, 4):
            case 0:
                return f"({divisor} != 0 ? {dividend} {operator} {divisor} : {other})"
            case 1:
                return f"({divisor} == 0 ? {other} : {dividend} {operator} {divisor})"
            case 2:
                return f"(0 < {divisor} && {self.expr('bool', d)} ? {dividend} {operator} {divisor} : {other})"
            case 3:
                return f"(!({divisor} < 0 || {divisor} == 0) ? {dividend} {operator} {divisor} : {other})"
        return f"div({dividend}, {divisor}, {other})"

    def int_call(self, depth: int) -> str:
        a, d = self.choose, depth - 1
        match a.number(0, 9):
            case 0:
                return f"{a.pick(('min', 'max'))}({self.expr('int', d)}, {self.expr('int', d)})"
            case 1:
                return f"abs({self.expr('int', d)})"
            case 2:
                return f"size({self.expr(a.pick((*LISTS, LABELS, AMOUNTS, 'string')), d)})"
            case 3:
                return f"{self.expr(a.pick((*LISTS, LABELS, 'string')), d)}.size()"
            case 4:
                return f"{a.pick(('int', 'round'))}({self.expr('double', d)})"
            case 5:
                return f"int({self.expr('string', d)})"
            case 6:
                return f"{self.expr(INTS, d)}.sum()"
            case 7:
                return f"{self.expr(INTS, d)}.{a.pick(('min', 'max'))}({self.expr('int', d)})"
            case 8:
                return f"{self.expr(STRINGS, d)}.{a.pick(('indexOf', 'lastIndexOf'))}({self.expr('string', d)})"
        return f"{self.expr('string', d)}.{a.pick(('indexOf', 'lastIndexOf'))}({self.expr('string', d)})"

    def comparison(self, depth: int) -> str:
        kind: Kind = self.choose.pick(
            ("int", "string", "int", "double", "bool", STRINGS, AMOUNTS, "Taint", "Toleration")
        )
        ordered = ("<", "<=", ">", ">=") if kind in ("int", "string", "double") else ()
        operator = self.choose.pick(("==", "!=", *ordered))
        return f"({self.expr(kind, depth)} {operator} {self.expr(kind, depth)})"

    def logic(self, depth: int) -> str:
        if self.choose.chance(25):
            return f"!{self.expr('bool', depth)}" if self.choose.chance(50) else f"!({self.expr('bool', depth)})"
        operator = self.choose.pick((" && ", " || "))
        return f"({operator.join(self.expr('bool', depth) for _ in range(self.choose.number(2, 3)))})"

    def containment(self, depth: int) -> str:
        container: Kind = self.choose.pick((STRINGS, LABELS, AMOUNTS, INTS))
        if container == AMOUNTS:
            key = self.choose.pick(RESOURCES) if self.choose.chance(50) else self.key("string", depth)
            return f"({key} in {self.expr(container, depth)})"
        return f"({self.expr('int' if container == INTS else 'string', depth)} in {self.expr(container, depth)})"

    def bool_call(self, depth: int) -> str:
        a, d = self.choose, depth - 1
        match a.number(0, 7):
            case 0 | 1:
                return f"{self.expr('LabelSelector', d)}.matches({self.expr(LABELS, d)})"
            case 2:
                return f"{self.expr('Toleration', d)}.tolerates({self.expr('Taint', d)})"
            case 3:
                taint = f"{{key: {self.expr('string', d)}, 'effect': \"NoSchedule\"}}"
                return f"{self.expr('Toleration', d)}.tolerates({taint})"
            case 4 if self.has("Pod"):
                return f"{self.expr('AffinityTerm', d)}.matches({self.expr('Pod', 0)})"
            case 5:
                return f"{self.expr('string', d)}.matches({a.pick(PATTERNS)})"
            case 6:
                return f"{self.expr(a.pick((STRINGS, INTS)), d)}.isSorted()"
        return f"{self.expr('string', d)}.{a.pick(('startsWith', 'endsWith', 'contains'))}({self.expr('string', d)})"

    def macro(self, depth: int) -> str:
        if self.loops >= 2:
            return self.comparison(depth - 1)
        kind: Kind = self.choose.pick((*LISTS, LABELS, AMOUNTS))
        over, names = self.expr(kind, depth - 1), self.variables(kind)
        body = self.within(names, "bool", depth)
        listed = ", ".join(name.text for name in names)
        return f"{over}.{self.choose.pick(('exists', 'all', 'exists_one'))}({listed}, {body})"

    def variables(self, kind: Kind) -> list[Name]:
        """One or two variables over a list or map."""
        first: Kind = "int" if kind[0] == "list" else kind[1]
        names = [Name(self.fresh("x"), first, CONSTANT), Name(self.fresh("x"), kind[-1], CONSTANT)]
        if self.choose.chance(40):
            return names
        return names[1:] if kind[0] == "list" else names[:1]

    def within(self, names: list[Name], kind: Kind, depth: int) -> str:
        """The body of a macro."""
        self.loops += 1
        self.deepest = max(self.deepest, self.loops)
        with self.scope(*names):
            body = self.expr(kind, depth)
        self.loops -= 1
        return body

    def list_options(self, kind: Kind) -> list[Callable[[int], str]]:
        item = kind[-1]
        options: list[Callable[[int], str]] = [
            lambda d: self.filtered(kind, d),
            lambda d: f"{self.expr(kind, d)}.distinct()",
            lambda d: f"({self.expr(kind, d)} + {self.expr(kind, d)})",
        ]
        if item in ("string", "int", "double"):
            options += [
                lambda d: self.mapped(item, d),
                lambda d: f"[{', '.join(self.expr(item, d) for _ in range(self.choose.number(1, 3)))}]",
            ]
        if item == "string":
            options.append(lambda _: f"{self.short('string')}.split({self.choose.pick(STRING_LITERALS)})")
        return options

    def filtered(self, kind: Kind, depth: int) -> str:
        if self.loops >= 2:
            return self.short(kind)
        over, names = self.expr(kind, depth - 1), self.variables(kind)
        if kind[0] == "map" and len(names) == 1:
            names.append(Name(self.fresh("x"), kind[-1], CONSTANT))
        return f"{over}.filter({', '.join(n.text for n in names)}, {self.within(names, 'bool', depth - 1)})"

    def mapped(self, item: Kind, depth: int) -> str:
        if self.loops >= 1:
            return self.short(("list", item))
        kind: Kind = self.choose.pick((*LISTS, LABELS, AMOUNTS))
        over, names = self.expr(kind, depth - 1), self.variables(kind)
        return f"{over}.map({', '.join(n.text for n in names)}, {self.within(names, item, depth - 1)})"

    def text(self, depth: int) -> str:
        """A literal with values in it; these may hold neither a brace nor the literal's quote."""
        parts: list[str] = []
        for _ in range(self.choose.number(1, 2)):
            value = self.expr(self.choose.pick(("string", "int", "bool", "double")), min(depth, 1))
            sound = not set(value) & set("{}'$\\")
            parts.append(f"{self.choose.pick(('', 'at ', 'é', ': '))}{f'${{{value}}}' if sound else '-'}")
        return f"'{''.join(parts)}'"

    def string_call(self, depth: int) -> str:
        a, d = self.choose, depth - 1
        value = self.expr("string", d)
        match a.number(0, 5):
            case 0:
                return f"({value} + {self.expr('string', d)})"
            case 1:
                return f"{value}.{a.pick(('trim', 'lowerAscii', 'upperAscii'))}()"
            case 2:
                return f"{value}.substring({self.expr('int', d)})"
            case 3:
                return f"{value}.substring({self.expr('int', d)}, {self.expr('int', d)})"
            case 4:
                return f"sha1({value})"
        return f"string({self.expr(a.pick(('int', 'bool', 'double')), d)})"

    def double(self, depth: int) -> str:
        a, d = self.choose, depth - 1
        x = self.expr("double", d)
        match a.number(0, 8):
            case 0 | 1:
                return f"({x} {a.pick(('+', '-', '*'))} {self.expr('double', d)})"
            case 2:
                return f"div({x}, {self.expr('double', d)}, {self.expr('double', 0)})"
            case 3:
                divisor = f"double({self.varying('int', 0)})"
                return f"({divisor} != 0.0 ? {x} / {divisor} : -1.0)"
            case 4:
                return f"{a.pick(('ln', 'sqrt', 'abs', '-'))}({x})"
            case 5:
                return f"{a.pick(('min', 'max'))}({x}, {self.expr('double', d)})"
            case 6:
                return f"double({self.expr('string', d)})"
            case 7:
                return f"{self.expr(('list', 'double'), d)}.sum()"
        return f"double({self.expr('int', d)})"

    @contextmanager
    def reading(self, most: int) -> Iterator[None]:
        """Reads no more than that stage for a while; `reached` is then the highest stage that was read."""
        before, self.most, self.reached, self.deepest = self.most, most, CONSTANT, self.loops
        yield
        self.most = before


def holds(kind: Kind, item: Kind) -> bool:
    """A list or map, or map of maps, in the end has such items."""
    if not isinstance(kind, tuple):
        return False
    return kind[-1] == item or (kind[-1][0] == "map" and holds(kind[-1], item))
