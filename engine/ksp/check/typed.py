"""The typed tree: what the checker makes of a tree, and what the compiler reads.

Names are resolved to `Binding`s, macros to `Comprehend`, methods to rows of the function table; every expression has a
type. Nodes are values; a binding is an identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from ksp.check.types import UNKNOWN, Type
from ksp.source.text import Span

if TYPE_CHECKING:
    from ksp.check.functions import Row
    from ksp.check.schema import FieldInfo


class Stage(IntEnum):
    """When the value of an expression is known: the outermost function that can compute it."""

    CONSTANT = 0
    POD = 1
    CLUSTER = 2
    FEASIBLE = 3
    NODE = 4


class Kind(IntEnum):
    """What a name stands for."""

    ROOT = 0  # pod, node, cluster, feasible
    CONST = 1
    PARAM = 2
    LET = 3
    ARGUMENT = 4  # of a fn
    VARIABLE = 5  # of a macro or a `for`
    ROW = 6  # of a view: a row of its relation, or an element of a list that belongs to the row
    VIEW = 7


@dataclass(eq=False, slots=True)
class Binding:
    """A name that stands for something; the same name elsewhere is another binding.

    `stage` is that of the value; `value` what a const or let stands for, `doc` the comment above it; `view` what the
    name of a view stands for. `is_key` if it is a variable that goes through a map's keys alone.
    """

    name: str
    kind: Kind
    type: Type
    span: Span | None
    stage: Stage
    value: Expr | None = None
    view: View | None = None
    doc: str = ""
    is_key: bool = False


# ---- expressions


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: bool, int, float or str"""

    span: Span
    type: Type
    value: bool | int | float | str


@dataclass(frozen=True, slots=True)
class Ref:
    """A name"""

    span: Span
    type: Type
    binding: Binding


@dataclass(frozen=True, slots=True)
class Read:
    """A field of a struct; an absent one reads as the zero of its type"""

    span: Span
    type: Type
    value: Expr
    field: FieldInfo


@dataclass(frozen=True, slots=True)
class Has:
    """`has(value.field)`"""

    span: Span
    type: Type
    value: Expr
    field: FieldInfo


@dataclass(frozen=True, slots=True)
class At:
    """An element of a list by index or of a map by key; an absent one reads as zero"""

    span: Span
    type: Type
    value: Expr
    key: Expr


@dataclass(frozen=True, slots=True)
class In:
    """`item in container`: an element of a list, or a key of a map"""

    span: Span
    type: Type
    item: Expr
    container: Expr


@dataclass(frozen=True, slots=True)
class Op:
    """An operator on one or two operands: `! neg + - * / % == != < <= > >=`; the operands' types say which"""

    span: Span
    type: Type
    operator: str
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """`a && b && …` or `a || b || …`, from the left until decided"""

    span: Span
    type: Type
    operator: str
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class If:
    """`condition ? then : otherwise`"""

    span: Span
    type: Type
    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class Apply:
    """A function or method of the function table; of a method the receiver is the first argument"""

    span: Span
    type: Type
    row: Row
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Invoke:
    """A `fn` of the policy"""

    span: Span
    type: Type
    function: Function
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Comprehend:
    """A macro: `kind` is all, exists, exists_one, filter or map; two variables are index or key, and value. Over a map
    one variable is the key."""

    span: Span
    type: Type
    kind: str
    variables: tuple[Binding, ...]
    range: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, b]`"""

    span: Span
    type: Type
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """`{"a": 1}`; of two equal keys the later counts"""

    span: Span
    type: Type
    entries: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True, slots=True)
class StructOf:
    """`{key: "gpu"}` where a struct is expected"""

    span: Span
    type: Type
    fields: tuple[tuple[FieldInfo, Expr], ...]


@dataclass(frozen=True, slots=True)
class Text:
    """`"a ${b}"`: strings, and expressions of type bool, int, double or string"""

    span: Span
    type: Type
    parts: tuple[str | Expr, ...]


@dataclass(frozen=True, slots=True)
class NodeScore:
    """`n.score`: what the first step of a priority gave the node"""

    span: Span
    type: Type
    node: Expr


@dataclass(frozen=True, slots=True)
class LetIn:
    """A value with a name for one expression: an argument of a `fn` that was put in the place of its call. Made by the
    compiler, never by the checker."""

    span: Span
    type: Type
    binding: Binding
    value: Expr
    body: Expr


Expr = (
    Constant
    | Ref
    | Read
    | Has
    | At
    | In
    | Op
    | Logic
    | If
    | Apply
    | Invoke
    | Comprehend
    | ListOf
    | MapOf
    | StructOf
    | Text
    | NodeScore
    | LetIn
)


def unknown(span: Span) -> Constant:
    """What has a mistake in it, which is reported: all that follows from it is silent."""
    return Constant(span, UNKNOWN, 0)


@dataclass(eq=False, slots=True)
class Function:
    """A `fn`. `stage` is that of what its body reads beside its arguments."""

    name: str
    span: Span
    parameters: tuple[Binding, ...]
    result: Type
    lets: tuple[Binding, ...]
    value: Expr
    stage: Stage
    doc: str
    signature: str


@dataclass(frozen=True, slots=True)
class Join:
    """One `VAR in LIST` of a view: a relation (`pods`, `nodes` or `feasible`; then `range` is None), or a list."""

    variable: Binding
    relation: str
    range: Expr | None


@dataclass(eq=False, slots=True)
class View:
    """An aggregate over rows. `form` is count, sum or first; `amount` is there for sum."""

    name: str
    span: Span
    form: str
    joins: tuple[Join, ...]
    where: Expr | None
    keys: tuple[Expr, ...]
    amount: Expr | None
    type: Type
    doc: str

    @property
    def relation(self) -> str:
        return self.joins[0].relation


# ---- statements


@dataclass(frozen=True, slots=True)
class Let:
    """A value with a name, for the statements after it"""

    span: Span
    binding: Binding


@dataclass(frozen=True, slots=True)
class Deny:
    """The node is denied for these reasons, if the condition holds"""

    span: Span
    unresolvable: bool
    reasons: tuple[Expr, ...]
    condition: Expr


@dataclass(frozen=True, slots=True)
class Fail:
    """The attempt ends with an error, if the condition holds"""

    span: Span
    message: Expr
    condition: Expr


@dataclass(frozen=True, slots=True)
class Stop:
    """The rule ends and admits, if the condition holds"""

    span: Span
    condition: Expr


@dataclass(frozen=True, slots=True)
class For:
    """The statements, for each element of a list or entry of a map"""

    span: Span
    variables: tuple[Binding, ...]
    range: Expr
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Collect:
    """Every `deny` in it that holds is reported"""

    span: Span
    body: tuple[Statement, ...]


Statement = Let | Deny | Fail | Stop | For | Collect


@dataclass(frozen=True, slots=True)
class Normalize:
    """How scores become 0..100: `largest`, `reversed`, or `block` with lets and a score"""

    form: str
    body: tuple[Statement, ...] = ()
    score: Expr | None = None


@dataclass(eq=False, slots=True)
class Parameter:
    """A `param` of a rule; without a default its value is the zero of its type"""

    binding: Binding
    default: Expr | None
    doc: str


@dataclass(eq=False, slots=True)
class Rule:
    """A predicate or a priority.

    `before` is what `prefilter` or `prescore` holds; `body` the rest, in order; `score` and `normalize` are there for
    priorities only.
    """

    kind: str
    name: str
    plugin: str
    span: Span
    doc: str
    parameters: tuple[Parameter, ...]
    views: tuple[Binding, ...]
    before: tuple[Statement, ...]
    body: tuple[Statement, ...]
    score: Expr | None
    normalize: Normalize | None


# ---- sets of rules


@dataclass(frozen=True, slots=True)
class RuleUse:
    """A rule in a provider: its arguments by parameter, and of a priority the weight"""

    rule: Rule
    arguments: tuple[tuple[str, Expr], ...]
    weight: int
    span: Span


@dataclass(eq=False, slots=True)
class Provider:
    """A set of rules, with what it extends and the providers it names already put in; those are its `parts`"""

    name: str
    span: Span
    predicates: tuple[RuleUse, ...]
    priorities: tuple[RuleUse, ...]
    doc: str
    parts: tuple[Provider, ...] = ()


@dataclass(eq=False, slots=True)
class Profile:
    """A provider under a scheduler's name. `arguments` are by rule and parameter; `percentage` is None if not set"""

    name: str
    span: Span
    provider: Provider
    arguments: tuple[tuple[str, str, Expr], ...]
    percentage: int | None
    preempts: bool
    checks_all: bool
    doc: str


# ---- tests


@dataclass(frozen=True, slots=True)
class TestObject:
    """An object of a test: `value` is its JSON; for one `from` a file, `path` names it, seen from the test's file"""

    kind: str
    name: str
    on: str
    value: dict[str, object]
    path: str
    span: Span


@dataclass(frozen=True, slots=True)
class Expect:
    """What a test expects: `verdict` is admits, denies, scores or places"""

    span: Span
    verdict: str
    rule: Rule | None
    provider: Provider | None
    pod: str
    node: str
    reason: str
    score: int


@dataclass(frozen=True, slots=True)
class Test:
    """A `test` block"""

    name: str
    span: Span
    objects: tuple[TestObject, ...]
    expects: tuple[Expect, ...]
