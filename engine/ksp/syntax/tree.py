"""The nodes of a ksp tree: plain values, each beside the text that it stands for.

Nothing is known here but what was written: names are not resolved and nothing has a type. Later passes never change a
tree. `span` is the text of the whole node; where a diagnostic should point at less, the node has a second span.
"""

from __future__ import annotations

from dataclasses import dataclass

from ksp.source.text import Span

# ---- expressions


@dataclass(frozen=True, slots=True)
class Name:
    """`pod`"""

    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class IntLiteral:
    """`42`; the sign is an operator, so 9223372036854775808 is allowed here and judged by the checker."""

    span: Span
    value: int


@dataclass(frozen=True, slots=True)
class DoubleLiteral:
    """`1.5`"""

    span: Span
    value: float


@dataclass(frozen=True, slots=True)
class QuantityLiteral:
    """`500m`, `1.5Gi`, `4cpu`: the number as written, and its suffix."""

    span: Span
    number: str
    suffix: str


@dataclass(frozen=True, slots=True)
class BoolLiteral:
    """`true`"""

    span: Span
    value: bool


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """`"node ${node.name}"`: texts with escapes resolved, and expressions, in order. A plain string has one text
    (possibly empty); so has a raw one."""

    span: Span
    parts: tuple[str | Expr, ...]


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[1, 2]`"""

    span: Span
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class MapEntry:
    """`key: "gpu"`"""

    span: Span
    key: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """`{key: "gpu", effect: "NoSchedule"}`: a map, or a struct where one is expected."""

    span: Span
    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """`pod.spec`; `name_span` is the name after the dot."""

    span: Span
    value: Expr
    name: str
    name_span: Span


@dataclass(frozen=True, slots=True)
class Index:
    """`node.labels["zone"]`"""

    span: Span
    value: Expr
    key: Expr


@dataclass(frozen=True, slots=True)
class Call:
    """`size(x)`"""

    span: Span
    name: str
    name_span: Span
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """`x.exists(t, t.key == "gpu")`; a macro's variables are ordinary names here."""

    span: Span
    value: Expr
    name: str
    name_span: Span
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """`!a` or `-a`"""

    span: Span
    operator: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Binary:
    """`a + b`: one of `+ - * / % == != < <= > >= in`"""

    span: Span
    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Logic:
    """`a && b && c`, flat however long: one of `&& ||`"""

    span: Span
    operator: str
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Ternary:
    """`a ? b : c`"""

    span: Span
    condition: Expr
    then: Expr
    otherwise: Expr


Expr = (
    Name
    | IntLiteral
    | DoubleLiteral
    | QuantityLiteral
    | BoolLiteral
    | StringLiteral
    | ListLiteral
    | MapLiteral
    | Field
    | Index
    | Call
    | Method
    | Unary
    | Binary
    | Logic
    | Ternary
)

# ---- types


@dataclass(frozen=True, slots=True)
class TypeName:
    """`map<string, list<int>>`"""

    span: Span
    name: str
    arguments: tuple[TypeName, ...]


# ---- statements of rules


@dataclass(frozen=True, slots=True)
class Const:
    """`const hostname = "kubernetes.io/hostname"`; `doc` is the text of the `///` lines above, "" if there are none."""

    span: Span
    name: str
    name_span: Span
    type: TypeName | None
    value: Expr
    doc: str


@dataclass(frozen=True, slots=True)
class Param:
    """`param resources: list<ResourceSpec> = [...]`"""

    span: Span
    name: str
    name_span: Span
    type: TypeName
    default: Expr | None
    doc: str


@dataclass(frozen=True, slots=True)
class Let:
    """`let key = c.topologyKey`"""

    span: Span
    name: str
    name_span: Span
    type: TypeName | None
    value: Expr
    doc: str


@dataclass(frozen=True, slots=True)
class FnParameter:
    """`name: string`"""

    span: Span
    name: str
    type: TypeName


@dataclass(frozen=True, slots=True)
class Function:
    """`fn f(a: int): int { let b = a return b }`; a body `= EXPR` has no lets."""

    span: Span
    name: str
    name_span: Span
    parameters: tuple[FnParameter, ...]
    result: TypeName
    lets: tuple[Let, ...]
    value: Expr
    doc: str


@dataclass(frozen=True, slots=True)
class Bind:
    """`c in hard` of a view"""

    span: Span
    name: str
    name_span: Span
    relation: Expr


@dataclass(frozen=True, slots=True)
class View:
    """`view v = sum t.weight for p in cluster.pods, t in ts where W by A, B`; `form` is count, sum or first; `amount`
    is there only for sum."""

    span: Span
    name: str
    name_span: Span
    form: str
    amount: Expr | None
    binds: tuple[Bind, ...]
    where: Expr | None
    by: tuple[Expr, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class Deny:
    """`deny unresolvable "reason", "another" when c`"""

    span: Span
    unresolvable: bool
    reasons: tuple[StringLiteral, ...]
    condition: Expr
    doc: str


@dataclass(frozen=True, slots=True)
class Fail:
    """`fail "message" when c`"""

    span: Span
    message: StringLiteral
    condition: Expr
    doc: str


@dataclass(frozen=True, slots=True)
class Stop:
    """`stop when c`"""

    span: Span
    condition: Expr
    doc: str


@dataclass(frozen=True, slots=True)
class For:
    """`for name, amount in pod.requests { ... }`; one or two names"""

    span: Span
    names: tuple[str, ...]
    name_spans: tuple[Span, ...]
    range: Expr
    body: tuple[Statement, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class Block:
    """`collect { ... }`, `prefilter { ... }` or `prescore { ... }`; `keyword` is that word and `keyword_span` its
    place."""

    span: Span
    keyword: str
    keyword_span: Span
    body: tuple[Statement, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class Score:
    """`score e`"""

    span: Span
    value: Expr
    doc: str


@dataclass(frozen=True, slots=True)
class Normalize:
    """`normalize`, `normalize reversed` or `normalize { ... }`; `body` is None for the first two."""

    span: Span
    keyword_span: Span
    reversed: bool
    body: tuple[Statement, ...] | None
    doc: str


Statement = Const | Param | Function | Let | View | Deny | Fail | Stop | For | Block | Score | Normalize

# ---- declarations


@dataclass(frozen=True, slots=True)
class Import:
    """`import "lib/nodes.ksp"`; `path_span` is the string."""

    span: Span
    path: str
    path_span: Span


@dataclass(frozen=True, slots=True)
class Rule:
    """`predicate NAME implements PLUGIN { ... }`, or `priority`; `kind` is that word."""

    span: Span
    kind: str
    name: str
    name_span: Span
    implements: str
    implements_span: Span | None
    body: tuple[Statement, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class Argument:
    """`resources: [...]` of a use"""

    span: Span
    name: str
    name_span: Span
    value: Expr


@dataclass(frozen=True, slots=True)
class Use:
    """`EvenPodsSpreadPriority(defaultConstraints: []): 2`, or `-NAME`; `weight` is None where none is written."""

    span: Span
    name: str
    name_span: Span
    removed: bool
    arguments: tuple[Argument, ...]
    weight: int | None
    weight_span: Span | None


@dataclass(frozen=True, slots=True)
class Section:
    """`predicates { ... }` or `priorities { ... }` of a provider; `kind` is predicate or priority."""

    span: Span
    kind: str
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class Provider:
    """`provider NAME extends OTHER { ... }`"""

    span: Span
    name: str
    name_span: Span
    extends: str
    extends_span: Span | None
    sections: tuple[Section, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class Setting:
    """`percentageOfNodesToScore = 30`, or `RULE.param = e`: `rule` is "" in the first form."""

    span: Span
    rule: str
    name: str
    name_span: Span
    value: Expr


@dataclass(frozen=True, slots=True)
class Profile:
    """`profile "batch" uses NAME { ... }`"""

    span: Span
    name: str
    name_span: Span
    provider: str
    provider_span: Span
    settings: tuple[Setting, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class TestObject:
    """`pod hog on full { ... }` or `node full from "fixtures/full.yaml"`: one of `literal` and `path` is there.
    `on` is "" where it is not written."""

    span: Span
    kind: str
    kind_span: Span
    name: str
    name_span: Span
    on: str
    on_span: Span | None
    literal: MapLiteral | None
    path: StringLiteral | None


@dataclass(frozen=True, slots=True)
class Expect:
    """`expect SUBJECT VERDICT POD on NODE [with REASON | SCORE]`; `verdict` is admits, denies, scores or places."""

    span: Span
    subject: str
    subject_span: Span
    verdict: str
    pod: str
    pod_span: Span
    node: str
    node_span: Span
    reason: StringLiteral | None
    score: Expr | None


@dataclass(frozen=True, slots=True)
class Test:
    """`test "a full node is refused" { ... }`"""

    span: Span
    name: str
    name_span: Span
    objects: tuple[TestObject, ...]
    expects: tuple[Expect, ...]
    doc: str


Declaration = Import | Const | Function | Rule | Provider | Profile | Test


@dataclass(frozen=True, slots=True)
class File:
    """A whole text: its declarations in order."""

    span: Span
    declarations: tuple[Declaration, ...]
