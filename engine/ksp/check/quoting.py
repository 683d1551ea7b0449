"""What reasons and messages may quote.

They stand in events and conditions of the pod that is scheduled, for all who may read that pod. Of the pod itself, its
node and its cluster they may say anything; texts of other pods, and of objects in other namespaces, are for those who
may read these. Numbers and truth values are free: a rule that counts says how many.

A value *quotes* what any text in it was taken from; names of resources are texts too. Of each expression it is told
what it quotes, "" for nothing that others own: from conditions nothing is taken, so a choice between texts of the
rule's own quotes nothing. Objects of the pod's namespace are its own; `pod.namespace`, no other text, leads to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ksp.check import schema
from ksp.check.report import Report
from ksp.check.stages import children
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Collect,
    Comprehend,
    Deny,
    Expr,
    Fail,
    For,
    If,
    Invoke,
    Kind,
    Read,
    Ref,
    Rule,
    Statement,
    View,
)
from ksp.check.types import List, Map, String, Struct, Type
from ksp.source.text import Span

PODS: Final = "other pods"
ELSEWHERE: Final = "objects in other namespaces"
CLAIMS: Final = "claims in other namespaces"
SELF: Final = "the pod"
"""Of a value: nothing that others own, and it is the pod that is scheduled, or its metadata."""
OWN: Final = "the pod's namespace"
"""Of a text: nothing that others own, and it is the name of the pod's namespace."""
Quotes = Mapping[Binding, str]

# Fields that hold what others own, in objects that are nobody's; and what leads from a pod to its node.
OF_OTHERS: Final = {
    ("Node", "hostPorts"): PODS,
    ("Node", "requested"): PODS,
    ("Node", "nonzeroRequested"): PODS,
    ("PersistentVolumeSpec", "claimRef"): CLAIMS,
}
TO_NODE: Final = ("Pod", "node")


def check_texts(report: Report, rule: Rule) -> None:
    """Reasons and messages of a rule without mistakes."""
    quoting = _Quoting()
    for statement, known in quoting.statements((*rule.before, *rule.body), {}):
        texts = statement.reasons if isinstance(statement, Deny) else (statement.message,)
        for text in texts:
            for part in children(text):
                if what := _as_part(quoting.quoted(part, known)):
                    _quotes_others(report, part.span, what)


def _quotes_others(report: Report, span: Span, what: str) -> None:
    report.error(
        "KSP0312", span, f"this text quotes {what}", "who reads the pod's events would see it",
        "quote numbers, or what the pod itself or a node says",
    )  # fmt: skip


class _Quoting:
    """What values quote. `known` are the arguments and variables around an expression."""

    def __init__(self) -> None:
        self._named: dict[Binding, str] = {}

    def statements(self, statements: Iterable[Statement], known: Quotes) -> Iterator[tuple[Deny | Fail, Quotes]]:
        """Those that say something, and what is known there."""
        for statement in statements:
            match statement:
                case Deny() | Fail():
                    yield statement, known
                case Collect(body=body):
                    yield from self.statements(body, known)
                case For(variables=variables, range=range, body=body):
                    self._named.update(self._of_items(variables, range, known))
                    yield from self.statements(body, known)

    def quoted(self, expr: Expr, known: Quotes) -> str:
        if not _holds_text(expr.type):
            return ""
        match expr:
            case Ref(binding=binding):
                return known[binding] if binding in known else self._of_name(binding)
            case Read():
                return self._field(expr, known)
            case At(value=Read() as objects, key=key) if _is_by_namespace(objects):
                return "" if self.quoted(key, known) == OWN else ELSEWHERE
            case Apply(row=row, arguments=(value,)) if row.name == "keys" and (levels := self._levels(value)):
                return levels[0]
            case At(value=value):
                return _as_part(self.quoted(value, known))
            case If(then=then, otherwise=otherwise):
                return self._any((then, otherwise), known)
            case Comprehend(kind=kind, variables=variables, range=range, body=body):
                inside = {**known, **self._of_items(variables, range, known)}
                return self.quoted(body, inside) if kind == "map" else self.quoted(range, known)
            case Invoke():
                return self._call(expr, known)
        return self._any(children(expr), known)

    def _any(self, parts: Iterable[Expr], known: Quotes) -> str:
        return next((what for part in parts if (what := _as_part(self.quoted(part, known)))), "")

    def _field(self, read: Read, known: Quotes) -> str:
        owner, name = read.field.owner, read.field.name
        if (owner, name) == TO_NODE:
            return ""
        if _is_by_namespace(read):
            return ELSEWHERE
        of = self.quoted(read.value, known)
        if of == SELF and name in ("metadata", "namespace"):
            return SELF if name == "metadata" else OWN
        return OF_OTHERS.get((owner, name)) or _as_part(of)

    def _call(self, call: Invoke, known: Quotes) -> str:
        inside = dict(known)
        for parameter, argument in zip(call.function.parameters, call.arguments, strict=True):
            inside[parameter] = self.quoted(argument, known)
        for let in call.function.lets:
            inside[let] = self.quoted(let.value, inside) if let.value is not None else ""
        return self.quoted(call.function.value, inside)

    def _of_name(self, binding: Binding) -> str:
        """A name that means the same wherever it is read."""
        if binding not in self._named:
            self._named[binding] = self._of_value(binding)
        return self._named[binding]

    def _of_value(self, binding: Binding) -> str:
        if binding.view is not None:
            return self._of_view(binding.view)
        if binding.kind is Kind.ROOT and binding.name == "pod":
            return SELF
        if binding.kind is Kind.LET and binding.value is not None:
            return self.quoted(binding.value, {})
        return ""

    def _of_view(self, view: View) -> str:
        """A row, or what its entries are called."""
        rows = self._rows(view)
        return rows[view.joins[0].variable] if view.form == "first" else self._any(view.keys, rows)

    def _rows(self, view: View) -> dict[Binding, str]:
        rows: dict[Binding, str] = {}
        for join in view.joins:
            if join.range is None:
                rows[join.variable] = PODS if join.relation == "pods" else ""
            else:
                rows[join.variable] = _as_part(self.quoted(join.range, rows))
        return rows

    def _levels(self, expr: Expr) -> tuple[str, ...]:
        """Of a view by several keys, or a part of it: what the entries of each level are called. Else ()."""
        match expr:
            case Ref(binding=Binding(view=View(form="count" | "sum", keys=keys) as view)):
                rows = self._rows(view)
                return tuple(_as_part(self.quoted(key, rows)) for key in keys)
            case Ref(binding=Binding(kind=Kind.LET, value=value)) if value is not None:
                return self._levels(value)
            case At(value=value):
                return self._levels(value)[1:]
        return ()

    def _of_items(self, variables: Sequence[Binding], range: Expr, known: Quotes) -> dict[Binding, str]:
        """What the variables of a loop quote: of a map the key alone, or key and value."""
        levels = self._levels(range)
        if not levels:
            return dict.fromkeys(variables, _as_part(self.quoted(range, known)))
        return dict(zip(variables, (levels[0], next(filter(None, levels[1:]), "")), strict=False))


def _as_part(what: str) -> str:
    """A part of the value, or a value that has it as a part, is neither the pod nor the name of its namespace."""
    return "" if what in (SELF, OWN) else what


def _is_by_namespace(objects: Read) -> bool:
    """`cluster.X`, where the first key is a namespace."""
    if objects.field.owner != "cluster":
        return False
    return objects.field.name == "namespaces" or schema.OBJECTS[objects.field.name][1]


def _holds_text(type: Type) -> bool:
    match type:
        case String() | Struct():
            return True
        case List(item):
            return _holds_text(item)
        case Map(key, value):
            return _holds_text(key) or _holds_text(value)
        case _:
            return False
