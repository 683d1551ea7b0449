"""Expressions: from a tree to a typed tree.

One pass, with the type that is expected passed inwards: it tells a struct literal from a map, and what an empty list
holds. A mistake is reported once; what follows from it is `Unknown` and silent.
"""

from __future__ import annotations

from collections.abc import Sequence

from ksp.check import mistakes, schema
from ksp.check.builtins import parser, pattern
from ksp.check.facts import Fact, absent_key, facts, nonzero
from ksp.check.functions import ERROR_ROWS, FUNCTIONS, MACROS, MATCHES, METHODS, Row, parse_row
from ksp.check.int_constants import fold
from ksp.check.quantities import quantity
from ksp.check.report import Report
from ksp.check.schema import FieldInfo
from ksp.check.scope import Named, Scope
from ksp.check.stages import stage_of
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Comprehend,
    Constant,
    Expr,
    Function,
    Has,
    If,
    In,
    Invoke,
    Kind,
    ListOf,
    Logic,
    MapOf,
    NodeScore,
    Op,
    Read,
    Ref,
    Stage,
    StructOf,
    Text,
)
from ksp.check.types import (
    ANY,
    ANY_INT,
    BOOL,
    CPU,
    DOUBLE,
    INT,
    STRING,
    UNKNOWN,
    Bool,
    Double,
    Int,
    List,
    Map,
    String,
    Struct,
    Type,
    Unknown,
    fits,
    join,
    resource_dimension,
    show,
)
from ksp.source.text import Span
from ksp.syntax import tree

NO_FACTS: frozenset[Fact] = frozenset()
TYPE_NAMES = ("int", "bool", "cpu", "bytes", "double", "string", "list", "map", "ResourceList")
IN_EVERY_RULE = "every rule has this name already"
SAME_TYPE = frozenset({"div", "min", "max", "abs"})  # functions of the type of their arguments
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


class Expressions:
    """Types expressions and reports what is wrong with them."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.used: set[Binding] = set()

    # ---- entry points

    def expr(
        self, node: tree.Expr, scope: Scope, expected: Type | None = None, known: frozenset[Fact] = NO_FACTS
    ) -> Expr:
        """Any expression; its own type may differ from the expected one."""
        match node:
            case tree.Name():
                return self._name(node, scope)
            case tree.IntLiteral() | tree.DoubleLiteral() | tree.BoolLiteral() | tree.QuantityLiteral():
                return self._literal(node)
            case tree.StringLiteral():
                return self._string(node, scope, known)
            case tree.ListLiteral():
                return self._list(node, scope, expected, known)
            case tree.MapLiteral():
                return self._map(node, scope, expected, known)
            case tree.Field():
                return self._field(node, scope, known)
            case tree.Index():
                return self._index(node, scope, known)
            case tree.Call():
                return self._call(node, scope, expected, known)
            case tree.Method():
                return self._method(node, scope, expected, known)
            case tree.Unary():
                return self._unary(node, scope, expected, known)
            case tree.Binary():
                return self._binary(node, scope, expected, known)
            case tree.Logic():
                return self._logic(node, scope, known)
            case tree.Ternary():
                return self._ternary(node, scope, expected, known)

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

    # ---- names and literals

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
        return self._unknown(node.span)

    def _unknown(self, span: Span) -> Expr:
        return Constant(span, UNKNOWN, 0)

    def _literal(self, node: tree.IntLiteral | tree.DoubleLiteral | tree.BoolLiteral | tree.QuantityLiteral) -> Expr:
        match node:
            case tree.BoolLiteral(span=span, value=truth):
                return Constant(span, BOOL, truth)
            case tree.DoubleLiteral(span=span, value=real):
                return Constant(span, DOUBLE, real)
            case tree.IntLiteral(span=span, value=value):
                return self._int(span, value, ANY_INT if value == 0 else INT)
            case tree.QuantityLiteral(span=span, number=number, suffix=suffix):
                amount, dimension = quantity(number, suffix)
                if amount.denominator != 1:
                    unit = "millicores" if dimension == CPU else "bytes"
                    mistakes.bad_quantity(self.report, span, node.span.text, unit)
                return self._int(span, int(amount), Int(ANY if amount == 0 else dimension))

    def _int(self, span: Span, value: int, type: Type) -> Expr:
        if not -(2**63) <= value < 2**63:
            mistakes.out_of_range(self.report, span)
            value = 0
        return Constant(span, type, value)

    def _string(self, node: tree.StringLiteral, scope: Scope, known: frozenset[Fact]) -> Expr:
        parts: list[str | Expr] = []
        for part in node.parts:
            if isinstance(part, str):
                parts.append(part)
                continue
            value = self.expr(part, scope, None, known)
            if not isinstance(value.type, Bool | Int | Double | String | Unknown):
                mistakes.wrong_type(
                    self.report, part.span, "a string, a number or a bool", value.type, "what a text shows"
                )
            parts.append(value)
        if all(isinstance(part, str) for part in parts):
            return Constant(node.span, STRING, "".join(part for part in parts if isinstance(part, str)))
        return Text(node.span, STRING, tuple(parts))

    def _list(self, node: tree.ListLiteral, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        wanted = expected.item if isinstance(expected, List) else None
        items = [self.expr(item, scope, wanted, known) for item in node.items]
        return ListOf(node.span, List(self._common(items, wanted, "the items of a list")), tuple(items))

    def _common(self, items: Sequence[Expr], wanted: Type | None, what: str) -> Type:
        """The one type of all items."""
        common: Type = UNKNOWN
        for item in items:
            joined = join(common, item.type)
            if joined is None:
                mistakes.mixed(self.report, item.span, what, common, item.type)
                return UNKNOWN
            common = joined
        return wanted if wanted is not None and not items else common

    def _map(self, node: tree.MapLiteral, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        if isinstance(expected, Struct):
            return self._struct(node, scope, expected, known)
        key_type = expected.key if isinstance(expected, Map) else None
        value_type = expected.value if isinstance(expected, Map) else None
        resources = isinstance(expected, Map) and expected.resources
        entries: list[tuple[Expr, Expr]] = []
        seen: set[tuple[type, object]] = set()
        for entry in node.entries:
            if resources and isinstance(entry.key, tree.Name):
                key: Expr = Constant(entry.key.span, STRING, entry.key.name)
            else:
                key = self._map_key(entry.key, scope, key_type, known)
            if isinstance(key, Constant) and not isinstance(key.type, Unknown):
                if (type(key.value), key.value) in seen:
                    mistakes.entry_twice(self.report, entry.key.span, entry.key.span.text)
                seen.add((type(key.value), key.value))
            if resources and isinstance(key, Constant) and isinstance(key.value, str):
                wanted = Int(resource_dimension(key.value))
                entries.append((key, self.wanted(entry.value, scope, wanted, f"`{key.value}`", known)))
            else:
                entries.append((key, self.expr(entry.value, scope, value_type, known)))
        keys = self._common([key for key, _ in entries], key_type, "the keys of a map")
        if not isinstance(keys, String | Int | Bool | Unknown):
            mistakes.wrong_type(
                self.report, node.entries[0].key.span, "a string, an int or a bool", keys, "the key of a map"
            )
        if resources:
            return MapOf(node.span, Map(STRING, ANY_INT, resources=True), tuple(entries))
        values = self._common([value for _, value in entries], value_type, "the values of a map")
        return MapOf(node.span, Map(keys, values), tuple(entries))

    def _map_key(self, node: tree.Expr, scope: Scope, key_type: Type | None, known: frozenset[Fact]) -> Expr:
        if isinstance(node, tree.Name) and scope.find(node.name) is None and not scope.is_broken(node.name):
            mistakes.bare_key(self.report, node.span, node.name)
            return self._unknown(node.span)
        return self.expr(node, scope, key_type, known)

    def _struct(self, node: tree.MapLiteral, scope: Scope, struct: Struct, known: frozenset[Fact]) -> Expr:
        fields = schema.fields_of(struct.name)
        given: dict[str, tuple[FieldInfo, Expr]] = {}
        for entry in node.entries:
            name = self._field_name(entry.key)
            field = fields.get(name) if name is not None else None
            if name is None:
                mistakes.not_a_field_name(self.report, entry.key.span, struct.name)
            elif field is None or len(field.path) != 1:
                mistakes.unknown_field(self.report, entry.key.span, struct.name, name, fields)
            elif name in given:
                mistakes.entry_twice(self.report, entry.key.span, name)
            else:
                given[name] = (field, self.wanted(entry.value, scope, _loose(field.type), f"`{name}`", known))
        return StructOf(node.span, struct, tuple(given.values()))

    def _field_name(self, key: tree.Expr) -> str | None:
        match key:
            case tree.Name(name=name):
                return name
            case tree.StringLiteral(parts=(str() as name,)):
                return name
        return None

    # ---- fields and elements

    def _field(self, node: tree.Field, scope: Scope, known: frozenset[Fact]) -> Expr:
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
            return self._unknown(node.span)
        if node.name not in schema.OBJECTS:
            known = [*schema.RELATIONS, *schema.OBJECTS]
            mistakes.unknown_objects(self.report, node.name_span, node.name, known)
            return self._unknown(node.span)
        type = schema.objects_type(node.name)
        field = FieldInfo("cluster", node.name, type, ("objects", node.name))
        cluster = Ref(node.value.span, UNKNOWN, CLUSTER)
        return Read(node.span, type, cluster, field)

    def _field_of(self, value: Expr, node: tree.Field, scope: Scope) -> Expr:
        match value.type:
            case Unknown():
                return self._unknown(node.span)
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
                self._no_field(node, value.type, known)
            case Map(resources=True):
                key = Constant(node.name_span, STRING, node.name)
                return At(node.span, Int(resource_dimension(node.name)), value, key)
            case Map(key=String()):
                self._no_field(node, value.type, [], f'an entry is read as `["{node.name}"]`')
            case other:
                self._no_field(node, other, [])
        return self._unknown(node.span)

    def _no_field(self, node: tree.Field, type: Type, known: Sequence[str], help: str = "") -> None:
        is_method = any(_takes(row, type) for row in METHODS.get(node.name, []))
        mistakes.unknown_field(
            self.report, node.name_span, show(type), node.name, known, is_method=is_method, help=help
        )

    def _index(self, node: tree.Index, scope: Scope, known: frozenset[Fact]) -> Expr:
        value = self.expr(node.value, scope, None, known)
        match value.type:
            case List(item):
                key = self.wanted(node.key, scope, INT, "an index", known)
                return At(node.span, item, value, key)
            case Map(key_type, value_type, resources):
                key = self.wanted(node.key, scope, key_type, "the key", known)
                if resources:
                    named = isinstance(key, Constant) and isinstance(key.value, str)
                    value_type = Int(resource_dimension(str(key.value))) if named else ANY_INT  # type: ignore[union-attr]
                return At(node.span, value_type, value, key)
        self.expr(node.key, scope, None, known)
        if not isinstance(value.type, Unknown):
            help = "a part of a text is `.substring(from, to)`" if isinstance(value.type, String) else ""
            mistakes.not_a_collection(self.report, node.value.span, value.type, "indexed", help)
        return self._unknown(node.span)

    # ---- operators

    def _unary(self, node: tree.Unary, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        if node.operator == "-" and isinstance(node.value, tree.IntLiteral):
            value = -node.value.value
            return self._int(node.span, value, ANY_INT if value == 0 else INT)
        if node.operator == "-" and isinstance(node.value, tree.DoubleLiteral):
            return Constant(node.span, DOUBLE, -node.value.value)
        operand = self.expr(node.value, scope, expected, known)
        allowed = Bool | Unknown if node.operator == "!" else Int | Double | Unknown
        if not isinstance(operand.type, allowed):
            mistakes.wrong_operands(self.report, node.span, node.operator, [operand.type])
            return self._unknown(node.span)
        if node.operator == "!":
            if isinstance(operand.type, Bool) and absent_key(operand, known):
                mistakes.maybe_absent(self.report, node.span, "`!`")
            elif isinstance(operand, Op) and operand.operator == "==":
                self._maybe_absent(node.span, "`!` of `==`", operand.operands, known)
            return Op(node.span, BOOL, "!", (operand,))
        return self._folded(Op(node.span, operand.type, "neg", (operand,)))

    def _folded(self, op: Op) -> Expr:
        """Integer constants are computed here, exactly: one that leaves 64 bits is a mistake, not a wrap."""
        value = fold(op)
        if value is None:
            return op
        return self._int(op.span, value, op.type)

    def _binary(self, node: tree.Binary, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        if node.operator == "in":
            return self._in(node, scope, known)
        inner = expected if node.operator not in COMPARISONS else None
        left = self.expr(node.left, scope, inner, known)
        right = self.expr(node.right, scope, left.type if isinstance(left.type, List | Map | Struct) else inner, known)
        if isinstance(left.type, Unknown) or isinstance(right.type, Unknown):
            return (
                Op(node.span, BOOL, node.operator, (left, right))
                if node.operator in COMPARISONS
                else self._unknown(node.span)
            )
        type = (
            self._compared(node, left, right, known)
            if node.operator in COMPARISONS
            else self._computed(node, left, right, known)
        )
        return (
            self._unknown(node.span)
            if type is None
            else self._folded(Op(node.span, type, node.operator, (left, right)))
        )

    def _compared(self, node: tree.Binary, left: Expr, right: Expr, known: frozenset[Fact]) -> Type:
        ordered = node.operator not in ("==", "!=")
        if join(left.type, right.type) is None:
            if isinstance(left.type, Int) and isinstance(right.type, Int):
                mistakes.wrong_dimension(
                    self.report, node.span, node.operator, left.type.dimension, right.type.dimension
                )
            else:
                mistakes.wrong_operands(self.report, node.span, node.operator, [left.type, right.type])
        elif ordered and not isinstance(left.type, Int | Double | String | Bool):
            mistakes.wrong_operands(self.report, node.span, node.operator, [left.type, right.type])
        elif node.operator == "!=":
            self._maybe_absent(node.span, "`!=`", (left, right), known)
        return BOOL

    def _maybe_absent(self, span: Span, what: str, sides: Sequence[Expr], known: frozenset[Fact]) -> None:
        """Where there is no such key, its value differs from every text but the empty one. Beside that it is plain what
        is meant."""
        absent = any(absent_key(side, known) is not None and isinstance(side.type, String) for side in sides)
        if absent and not any(isinstance(side, Constant) and side.value == "" for side in sides):
            mistakes.maybe_absent(self.report, span, what)

    def _computed(self, node: tree.Binary, left: Expr, right: Expr, known: frozenset[Fact]) -> Type | None:
        operator = node.operator
        if operator in ("/", "%"):
            self._divisor(node, right, known)
        match left.type, right.type:
            case Int(a), Int(b):
                return self._int_result(node, a, b)
            case Double(), Double() if operator != "%":
                return DOUBLE
            case String(), String() if operator == "+":
                return STRING
            case List(), List() if operator == "+":
                joined = join(left.type, right.type)
                if joined is None:
                    mistakes.mixed(self.report, node.right.span, "the two lists", left.type, right.type)
                return joined
        mistakes.wrong_operands(self.report, node.span, operator, [left.type, right.type])
        return None

    def _int_result(self, node: tree.Binary, a: tuple[int, int] | None, b: tuple[int, int] | None) -> Type:
        if node.operator in ("*", "/"):
            if a is None or b is None:
                return ANY_INT
            sign = 1 if node.operator == "*" else -1
            return Int((a[0] + sign * b[0], a[1] + sign * b[1]))
        joined = join(Int(a), Int(b))
        if joined is None:
            mistakes.wrong_dimension(self.report, node.span, node.operator, a, b)
        return joined or UNKNOWN

    def _divisor(self, node: tree.Binary, right: Expr, known: frozenset[Fact]) -> None:
        if isinstance(right, Constant):
            if right.value == 0:
                mistakes.division_by_zero(self.report, node.right.span, node.operator)
        elif nonzero(right) not in known:
            mistakes.division(self.report, node.right.span, node.operator, node.right.span.text)

    def _in(self, node: tree.Binary, scope: Scope, known: frozenset[Fact]) -> Expr:
        container = self.expr(node.right, scope, None, known)
        wanted = (
            container.type.item
            if isinstance(container.type, List)
            else container.type.key
            if isinstance(container.type, Map)
            else None
        )
        if wanted is None and not isinstance(container.type, Unknown):
            help = "for a part of a text, `text.contains(part)`" if isinstance(container.type, String) else ""
            mistakes.not_a_collection(self.report, node.right.span, container.type, "looked into with `in`", help)
        item = (
            self.wanted(node.left, scope, wanted, "what is looked for", known)
            if wanted
            else self.expr(node.left, scope, None, known)
        )
        return In(node.span, BOOL, item, container)

    def _logic(self, node: tree.Logic, scope: Scope, known: frozenset[Fact]) -> Expr:
        items: list[Expr] = []
        for item in node.items:
            value = self.wanted(item, scope, BOOL, f"a part of `{node.operator}`", known)
            known |= facts(value, node.operator == "&&")
            items.append(value)
        return Logic(node.span, BOOL, node.operator, tuple(items))

    def _ternary(self, node: tree.Ternary, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        condition = self.wanted(node.condition, scope, BOOL, "a condition", known)
        then = self.expr(node.then, scope, expected, known | facts(condition, holds=True))
        otherwise = self.expr(node.otherwise, scope, expected or then.type, known | facts(condition, holds=False))
        type = join(then.type, otherwise.type)
        if type is None:
            if isinstance(then.type, Int) and isinstance(otherwise.type, Int):
                mistakes.wrong_dimension(
                    self.report, node.otherwise.span, ":", then.type.dimension, otherwise.type.dimension
                )
            else:
                mistakes.mixed(self.report, node.otherwise.span, "the two outcomes", then.type, otherwise.type)
        return If(node.span, type or UNKNOWN, condition, then, otherwise)

    # ---- calls

    def _call(self, node: tree.Call, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        if node.name == "has":
            return self._has(node, scope, known)
        found = scope.find(node.name)
        if isinstance(found, Function):
            return self._invoke(node, found, scope, known)
        if node.name in FUNCTIONS:
            rows = FUNCTIONS[node.name]
            wanted = expected if node.name in SAME_TYPE else None
            arguments = [self.expr(a, scope, wanted, known) for a in node.arguments]
            return self._apply(node.span, node.name_span, rows, arguments)
        for argument in node.arguments:
            self.expr(argument, scope, None, known)
        if found is not None:
            mistakes.not_a_function(self.report, node.name_span, node.name)
        elif not scope.is_broken(node.name):
            mistakes.unknown_function(self.report, node.name_span, node.name, [*scope.functions(), *FUNCTIONS, "has"])
        return self._unknown(node.span)

    def _has(self, node: tree.Call, scope: Scope, known: frozenset[Fact]) -> Expr:
        argument = node.arguments[0] if len(node.arguments) == 1 else None
        if not isinstance(argument, tree.Field):
            for given in node.arguments:
                self.expr(given, scope, None, known)
            mistakes.bad_has(self.report, node.span)
            return self._unknown(node.span)
        read = self._field(argument, scope, known)
        match read:
            case Read(value=value, field=field) if field.owner != "cluster":
                return Has(node.span, BOOL, value, field)
            case At(value=value, key=key):
                return In(node.span, BOOL, key, value)
        if not isinstance(read.type, Unknown):
            mistakes.bad_has(self.report, node.span)
        return self._unknown(node.span)

    def _invoke(self, node: tree.Call, function: Function, scope: Scope, known: frozenset[Fact]) -> Expr:
        parameters = function.parameters
        arguments = [
            self.expr(a, scope, parameters[i].type if i < len(parameters) else None, known)
            for i, a in enumerate(node.arguments)
        ]
        matching = len(arguments) == len(parameters) and all(
            fits(a.type, p.type) for a, p in zip(arguments, parameters, strict=True)
        )
        if not matching:
            types = [a.type for a in arguments]
            if len(types) == len(parameters) and _same_but_dimensions(types, [p.type for p in parameters]):
                for argument, parameter in zip(arguments, parameters, strict=True):
                    self._dimension_of(argument, parameter)
            else:
                mistakes.wrong_arguments(self.report, node.span, node.name, types, [function.signature])
            return Constant(node.span, function.result, 0)
        return Invoke(node.span, function.result, function, tuple(arguments))

    def _dimension_of(self, argument: Expr, parameter: Binding) -> None:
        given, wanted = _number_of(argument.type), _number_of(parameter.type)
        if given is not None and wanted is not None and not fits(given, wanted):
            what = f"`{parameter.name}`"
            mistakes.dimension_wanted(self.report, argument.span, wanted.dimension, given.dimension, what)

    def _apply(self, span: Span, name_span: Span, rows: Sequence[Row], arguments: Sequence[Expr]) -> Expr:
        types = [a.type for a in arguments]
        for row in rows:
            offset = 1 if row.method else 0
            if row.arity[0] + offset <= len(types) <= row.arity[1] + offset:
                result = row.typing(types)
                if result is not None:
                    return self._row_applied(span, row, arguments, result)
        if not any(isinstance(type, Unknown) for type in types):
            self._not_applied(name_span, rows, types)
        return self._unknown(span)

    def _not_applied(self, span: Span, rows: Sequence[Row], types: Sequence[Type]) -> None:
        """Why no row takes arguments of these types."""
        name = rows[0].name
        loose = [_without_dimension(type) for type in types]
        if any(row.accepts(loose) for row in rows):
            dimensions = [
                type.dimension for type in map(_number_of, types) if type is not None and type.dimension is not None
            ]
            first = dimensions[0]
            mistakes.wrong_dimension(self.report, span, name, first, next((d for d in dimensions if d != first), first))
        elif rows[0].method:
            signatures = [part for row in rows for part in row.signatures_for(_receiver(types[0]))]
            mistakes.wrong_arguments(
                self.report, span, f"{show(types[0])}.{name}", types[1:], dict.fromkeys(signatures)
            )
        else:
            mistakes.wrong_arguments(self.report, span, name, types, dict.fromkeys(r.signature for r in rows))

    def _row_applied(self, span: Span, row: Row, arguments: Sequence[Expr], result: Type) -> Expr:
        if row is MATCHES:
            self._check_pattern(arguments[1])
        return Apply(span, result, row, tuple(arguments))

    def _check_pattern(self, argument: Expr) -> None:
        if not isinstance(argument, Constant) or not isinstance(argument.value, str):
            mistakes.pattern_not_constant(self.report, argument.span)
            return
        try:
            pattern(argument.value)
        except Exception as error:  # noqa: BLE001 - re2.error is known only once re2 is loaded
            reason = error.args[0] if error.args else error
            mistakes.bad_pattern(
                self.report, argument.span, reason.decode() if isinstance(reason, bytes) else str(reason)
            )

    def _method(self, node: tree.Method, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        parsed = self._parse_call(node, scope, known)
        if parsed is not None:
            return parsed
        value = self.expr(node.value, scope, None, known)
        if node.name in MACROS:
            return self._macro(node, value, scope, known)
        rows = [row for row in METHODS.get(node.name, []) if _takes(row, value.type)]
        if not rows:  # nor are its arguments looked at: they may hold the variables of a misspelt macro
            if not isinstance(value.type, Unknown):
                self._no_method(node, value.type)
            return self._unknown(node.span)
        wanted = value.type.item if isinstance(value.type, List) else None
        arguments = [self.expr(a, scope, wanted or expected_argument(node.name), known) for a in node.arguments]
        return self._apply(node.span, node.name_span, rows, [value, *arguments])

    def _no_method(self, node: tree.Method, type: Type) -> None:
        methods = [name for name, rows in METHODS.items() if any(_takes(row, type) for row in rows)]
        macros = MACROS if isinstance(type, List | Map) else ()
        is_field = isinstance(type, Struct) and node.name in schema.fields_of(type.name)
        mistakes.unknown_method(self.report, node.name_span, node.name, [*methods, *macros], type, is_field=is_field)

    def _parse_call(self, node: tree.Method, scope: Scope, known: frozenset[Fact]) -> Expr | None:
        """`TYPE.parse(json)`"""
        if node.name != "parse" or not isinstance(node.value, tree.Name) or scope.find(node.value.name) is not None:
            return None
        kind = schema.struct_names().get(node.value.name)
        if kind is None:
            return None
        if kind in schema.RENAMED.values():
            mistakes.not_parsed(self.report, node.span, node.value.name)
            return self._unknown(node.span)
        arguments = [self.expr(a, scope, STRING, known) for a in node.arguments]
        return self._apply(node.span, node.name_span, [parse_row(node.value.name, parser(kind))], arguments)

    def _macro(self, node: tree.Method, value: Expr, scope: Scope, known: frozenset[Fact]) -> Expr:
        if isinstance(value.type, Unknown):
            return self._unknown(node.span)
        *names, body_node = node.arguments or (None,)
        if body_node is None or len(names) not in (1, 2) or not all(isinstance(n, tree.Name) for n in names):
            mistakes.bad_macro(self.report, node.span, node.name, "takes one or two names and an expression")
            return self._unknown(node.span)
        variables = self.variables([(n.name, n.span) for n in names if isinstance(n, tree.Name)], value, scope)
        inner = scope.inner()
        inner.names.update({v.name: v for v in variables})
        wants_bool = node.name != "map"
        body = (
            self.wanted(body_node, inner, BOOL, f"the condition of `{node.name}`", known)
            if wants_bool
            else self.expr(body_node, inner, None, known)
        )
        return Comprehend(
            node.span, _macro_type(node.name, value.type, variables, body), node.name, variables, value, body
        )

    def variables(self, names: Sequence[tuple[str, Span]], value: Expr, scope: Scope) -> tuple[Binding, ...]:
        """The variables of a macro or a `for` over a value: item; index and item; key; or key and value."""
        match value.type:
            case List(item):
                types: tuple[Type, ...] = (item,) if len(names) == 1 else (INT, item)
            case Map(key, entry):
                types = (key,) if len(names) == 1 else (key, entry)
            case other:
                types = (UNKNOWN, UNKNOWN)
                if not isinstance(other, Unknown):
                    mistakes.not_a_collection(self.report, value.span, other, "gone through")
        stage = stage_of(value)
        found: dict[str, Binding] = {}
        for (name, span), type in zip(names, types, strict=False):
            clash: Named | None = found.get(name) or scope.clash(name)
            if clash is not None:
                mistakes.declared_twice(self.report, span, name, clash.span, IN_EVERY_RULE)
            found[name] = Binding(name, Kind.VARIABLE, type, span, stage)
        return tuple(found.values())


def _number_of(type: Type) -> Int | None:
    """The int, or the int in a list."""
    return type if isinstance(type, Int) else _number_of(type.item) if isinstance(type, List) else None


def _without_dimension(type: Type) -> Type:
    match type:
        case Int():
            return ANY_INT
        case List(item):
            return List(_without_dimension(item))
    return type


def _same_but_dimensions(given: Sequence[Type], wanted: Sequence[Type]) -> bool:
    return all(fits(_without_dimension(g), w) for g, w in zip(given, wanted, strict=True))


def _receiver(type: Type) -> str:
    return type.name if isinstance(type, Struct) else type.__class__.__name__.lower()


def _loose(type: Type) -> Type:
    """A struct's own int takes any dimension: a parameter's weight may be a quantity."""
    return ANY_INT if isinstance(type, Int) else type


def expected_argument(method: str) -> Type | None:
    return Struct("Taint") if method == "tolerates" else None


def _takes(row: Row, receiver: Type) -> bool:
    """The row is a method of the receiver's type: some arguments would make it fit."""
    return isinstance(receiver, Struct | String | List | Map) and _receiver(receiver) in row.receivers


def _macro_type(name: str, over: Type, variables: tuple[Binding, ...], body: Expr) -> Type:
    match name, over:
        case "map", _:
            return List(body.type)
        case "filter", List():
            return over
        case "filter", Map(key, _):
            return List(key) if len(variables) == 1 else over
        case "filter", _:
            return UNKNOWN
    return BOOL


CLUSTER = Binding("cluster", Kind.ROOT, UNKNOWN, None, Stage.POD)
