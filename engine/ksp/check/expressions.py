"""Expressions: from a tree to a typed tree.

One pass, with the type that is expected passed inwards: it tells a struct literal from a map, and what an empty list
holds. A mistake is reported once; what follows from it is `Unknown` and silent.
"""

from __future__ import annotations

from collections.abc import Sequence

from ksp.check import mistakes, resources, schema
from ksp.check.calls import Calls
from ksp.check.elsewhere import field_elsewhere
from ksp.check.facts import NO_FACTS, Fact
from ksp.check.functions import ERROR_ROWS, FUNCTIONS, METHODS
from ksp.check.literals import Literals
from ksp.check.operators import Operators
from ksp.check.report import Report
from ksp.check.schema import FieldInfo
from ksp.check.scope import Scope
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Constant,
    Expr,
    Kind,
    NodeScore,
    Read,
    Ref,
    Stage,
    unknown,
)
from ksp.check.types import (
    ANY_INT,
    BOOL,
    CPU,
    DOUBLE,
    INT,
    STRING,
    UNKNOWN,
    Bool,
    Int,
    List,
    Map,
    String,
    Struct,
    Type,
    Unknown,
    fits,
    show,
)
from ksp.syntax import tree

TYPE_NAMES = ("int", "bool", "cpu", "bytes", "double", "string", "list", "map", "ResourceList")
SAME_TYPE = frozenset({"div", "min", "max", "abs"})  # functions of the type of their arguments


class Expressions:
    """Types expressions and reports what is wrong with them."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.used: set[Binding] = set()
        self.literals = Literals(self, report)
        self.operators = Operators(self, report)
        self.calls = Calls(self, report)

    # ---- entry points

    def expr(
        self, node: tree.Expr, scope: Scope, expected: Type | None = None, known: frozenset[Fact] = NO_FACTS
    ) -> Expr:
        """Any expression; its own type may differ from the expected one."""
        match node:
            case tree.Name():
                return self._name(node, scope)
            case tree.IntLiteral() | tree.DoubleLiteral() | tree.BoolLiteral() | tree.QuantityLiteral():
                return self.literals.literal(node)
            case tree.StringLiteral():
                return self.literals.string(node, scope, known)
            case tree.ListLiteral():
                return self.literals.list_(node, scope, expected, known)
            case tree.MapLiteral():
                return self.literals.map_(node, scope, expected, known)
            case tree.Field():
                return self.field(node, scope, known)
            case tree.Index():
                return self._index(node, scope, known)
            case tree.Call():
                return self.calls.call(node, scope, expected, known)
            case tree.Method():
                return self.calls.method(node, scope, expected, known)
            case tree.Unary():
                return self.operators.unary(node, scope, expected, known)
            case tree.Binary():
                return self.operators.binary(node, scope, expected, known)
            case tree.Logic():
                return self.operators.logic(node, scope, known)
            case tree.Ternary():
                return self.operators.ternary(node, scope, expected, known)

    def wanted(
        self, node: tree.Expr, scope: Scope, type: Type, what: str = "this", known: frozenset[Fact] = NO_FACTS
    ) -> Expr:
        """An expression that must have the type."""
        value = self.expr(node, scope, type, known)
        if not fits(value.type, type):
            if isinstance(value.type, Int) and isinstance(type, Int):
                mistakes.dimension_wanted(self.report, node.span, type.dimension, value.type.dimension, what)
            else:
                mistakes.wrong_type(self.report, node.span, type, value.type, what)
        return value

    def condition(self, node: tree.Expr, scope: Scope) -> Expr:
        return self.wanted(node, scope, BOOL, "a condition")

    def type_named(self, node: tree.TypeName, *, argument: bool = False) -> Type:
        """A type as written. The ints of an argument fit any dimension."""
        arguments = [self.type_named(a, argument=argument) for a in node.arguments]
        match node.name, arguments:
            case "int", []:
                return ANY_INT if argument else INT
            case "bool", []:
                return BOOL
            case "cpu", []:
                return Int(CPU)
            case "bytes", []:
                return Int((0, 1))
            case "double", []:
                return DOUBLE
            case "string", []:
                return STRING
            case "ResourceList", []:
                return Map(STRING, ANY_INT, resources=True)
            case "list", [item]:
                return List(item)
            case "map", [String() | Int() | Bool() as key, value]:
                return Map(key, value)
            case name, [] if name in schema.struct_names():
                return Struct(name)
        mistakes.unknown_type(self.report, node.span, node.span.text, [*TYPE_NAMES, *schema.struct_names()])
        return UNKNOWN

    # ---- names

    def _name(self, node: tree.Name, scope: Scope) -> Expr:
        found = scope.find(node.name)
        if isinstance(found, Binding) and node.name != "cluster":
            self.used.add(found)
            if found.kind is Kind.CONST and isinstance(found.value, Constant):
                return Constant(node.span, found.type, found.value.value)
            return Ref(node.span, found.type, found)
        if found is not None:
            what = "the cluster as a whole" if isinstance(found, Binding) else "a function"
            mistakes.not_a_value(self.report, node.span, node.name, what)
        elif not scope.is_broken(node.name):
            if node.name in FUNCTIONS or node.name == "has":
                mistakes.not_a_value(self.report, node.span, node.name, "a function")
            elif node.name in schema.struct_names() or node.name in TYPE_NAMES:
                mistakes.not_a_value(self.report, node.span, node.name, "a type")
            else:
                mistakes.unknown_name(self.report, node.span, node.name, scope.all_names(), scope.hint(node.name))
        return unknown(node.span)

    # ---- fields and elements

    def field(self, node: tree.Field, scope: Scope, known: frozenset[Fact]) -> Expr:
        if self._is_cluster(node.value, scope):
            return self._cluster_field(node)
        value = self.expr(node.value, scope, None, known)
        return self._field_of(value, node, scope)

    def _is_cluster(self, node: tree.Expr, scope: Scope) -> bool:
        found = scope.find(node.name) if isinstance(node, tree.Name) else None
        return isinstance(found, Binding) and found.kind is Kind.ROOT and found.name == "cluster"

    def _cluster_field(self, node: tree.Field) -> Expr:
        if node.name in schema.RELATIONS:
            mistakes.relation_outside_view(self.report, node.span, f"cluster.{node.name}")
            return unknown(node.span)
        if node.name not in schema.OBJECTS:
            known = [*schema.RELATIONS, *schema.OBJECTS]
            mistakes.unknown_objects(self.report, node.name_span, node.name, known)
            return unknown(node.span)
        type = schema.objects_type(node.name)
        field = FieldInfo("cluster", node.name, type, ("objects", node.name))
        cluster = Ref(node.value.span, UNKNOWN, CLUSTER)
        return Read(node.span, type, cluster, field)

    def _field_of(self, value: Expr, node: tree.Field, scope: Scope) -> Expr:
        match value.type:
            case Unknown():
                return unknown(node.span)
            case Struct(name="Node") if node.name == "score":
                if not scope.knows_scores():
                    mistakes.score_of_node(self.report, node.name_span)
                return NodeScore(node.span, INT, value)
            case Struct(name=name) if node.name == "error" and name in ERROR_ROWS:
                return Apply(node.span, STRING, ERROR_ROWS[name], (value,))
            case Struct(name=name):
                field = schema.fields_of(name).get(node.name)
                if field is not None:
                    return Read(node.span, field.type, value, field)
                known = [*schema.fields_of(name), *(("error",) if name in ERROR_ROWS else ())]
                self._no_field(node, value.type, known, elsewhere=field_elsewhere(value, node.name))
            case Map(resources=True):
                amount = resources.check_name(self.report, node.name_span, node.name, as_field=True)
                return At(node.span, amount, value, Constant(node.name_span, STRING, node.name))
            case Map(key=String()):
                self._no_field(node, value.type, [], f'an entry is read as `["{node.name}"]`')
            case other:
                self._no_field(node, other, [], _if_key(value))
        return unknown(node.span)

    def _no_field(
        self, node: tree.Field, type: Type, known: Sequence[str], help: str = "", elsewhere: str = ""
    ) -> None:
        if any(row.is_method_of(type) for row in METHODS.get(node.name, [])):
            elsewhere = f"{node.name}()"
        mistakes.unknown_field(self.report, node.name_span, show(type), node.name, known, meant=elsewhere, help=help)

    def _index(self, node: tree.Index, scope: Scope, known: frozenset[Fact]) -> Expr:
        value = self.expr(node.value, scope, None, known)
        match value.type:
            case List(item):
                key = self.wanted(node.key, scope, INT, "an index", known)
                return At(node.span, item, value, key)
            case Map(key_type, value_type, is_resource_list):
                key = self.wanted(node.key, scope, key_type, "the key", known)
                if is_resource_list:
                    value_type = resources.check_name(self.report, node.key.span, resources.constant_name(key))
                return At(node.span, value_type, value, key)
        self.expr(node.key, scope, None, known)
        if not isinstance(value.type, Unknown):
            help = "a part of a text is `.substring(from, to)`" if isinstance(value.type, String) else ""
            mistakes.not_a_collection(self.report, node.value.span, value.type, "indexed", help)
        return unknown(node.span)


def _if_key(value: Expr) -> str:
    """What to do about a map's key that is taken for its entry."""
    if not (isinstance(value, Ref) and value.binding.is_key):
        return ""
    return f"`{value.binding.name}` is a key of the map: of two names the second is the entry"


CLUSTER = Binding("cluster", Kind.ROOT, UNKNOWN, None, Stage.POD)
