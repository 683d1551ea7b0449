"""Expressions to Python: each part in the outermost place where it can be computed.

`Emitter.expr` gives the code of an expression for the innermost place of a chain. A part that needs nothing of that
place is computed further out and stands in the code by its name; a loop over a list that is known further out takes
what it can along (see `places.Column`). The code cannot raise: every lookup has a zero to fall back on, ints are
wrapped.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ksp.check.schema import struct_names
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Comprehend,
    Constant,
    Expr,
    Has,
    If,
    In,
    Kind,
    LetIn,
    ListOf,
    Logic,
    MapOf,
    NodeScore,
    Op,
    Read,
    Ref,
    StructOf,
    Text,
)
from ksp.check.types import Bool, Double, Int, List, Map, Struct, Type
from ksp.compile import code
from ksp.compile.bounds import fits_in_64_bits
from ksp.compile.free import FreeNames
from ksp.compile.holds import holds_doubles, holds_objects
from ksp.compile.inline import inline
from ksp.compile.places import Column, Frame, Inner, Key, Names, Place, key_of
from ksp.compile.quick import quick
from ksp.compile.traced import reporting
from ksp.compile.zeros import zero_of

COMPARE: Mapping[str, type[ast.cmpop]] = {
    "==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip
ARITHMETIC: Mapping[str, type[ast.operator]] = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult}
PLAIN_TEXT = re.compile(r"[A-Za-z0-9 ._/:-]*")
Chain = tuple[Place, ...]
ViewCode = Callable[[Binding, Chain], str]


class Emitter:
    """Makes the code of one rule. `constants` are values that the code names; `views` is asked when a view is first
    read. With `traced`, comparisons report their operands."""

    def __init__(self, *, traced: bool = False) -> None:
        self.names = Names()
        self.free = FreeNames()
        self.constants: dict[str, object] = {}
        self.lets: dict[Binding, Expr] = {}
        self.view_code: ViewCode | None = None
        self.traced = traced
        self.sites: list[Expr] = []
        self.live: set[str] = set()  # names of the state's own maps, which follow it by themselves
        self.with_objects: set[str] = set()  # names of values that are, or hold, pods or nodes
        self._constant_names: dict[tuple[str, object], str] = {}

    # ---- where

    def place(self, expr: Expr, chain: Chain) -> Place:
        """The outermost place of the chain where all that the expression names has a name."""
        free = self.free.of(expr)
        needed: set[Key] = set()
        for name in free.names:
            needed |= {name} if isinstance(name, str) else self._keys(name, free.bound, chain)
        return next(place for place in chain if all(place.name_of(key) is not None for key in needed))

    def _keys(self, binding: Binding, bound: frozenset[Binding], chain: Chain) -> set[Key]:
        """What must be known for a name to be read. A `let` in a loop that is still to be entered needs what its value
        needs; any other is given its name now."""
        value = self.lets.get(binding)
        if value is None or not bound or chain[-1].name_of(binding) is not None:
            return {self._named(binding, chain)}
        needs = self.free.through_lets(value, self.lets)
        if not needs & bound:
            return {self._named(binding, chain)}
        return {n if isinstance(n, str) else self._named(n, chain) for n in needs - bound if n not in self.lets}

    def _named(self, binding: Binding, chain: Chain) -> Key:
        """Sees to it that the binding has a name: a `let` or `const` is computed when it is first read."""
        key = key_of(binding)
        if chain[-1].name_of(key) is not None:
            return key
        if binding.kind is Kind.VIEW and self.view_code is not None:
            self.view_code(binding, chain)
        else:
            value = self.lets.get(binding, binding.value)
            assert value is not None, binding
            self._let(binding, inline(value) if binding.kind is Kind.CONST else value, chain)
        return key

    def _let(self, binding: Binding, value: Expr, chain: Chain) -> None:
        place = self.place(value, chain)
        made = self.expr(value, self.until(place, chain))
        place.bind(key_of(binding), self._assigned(place, made, binding.name, binding.type))

    def until(self, place: Place, chain: Chain) -> Chain:
        """The chain as it is seen from one of its places."""
        lineage = set(place.lineage())
        return tuple(p for p in chain if p in lineage)

    def _assigned(self, place: Place, value: ast.expr, hint: str, type: Type) -> str:
        name = place.assign(value, hint)
        if holds_objects(type):
            self.with_objects.add(name)
        return name

    def constant(self, value: object, hint: str) -> ast.Name:
        """A name for a value that the code cannot write."""
        identity = (hint, id(value))
        if identity not in self._constant_names:
            made = self.names.fresh(f"{hint}")
            self._constant_names[identity] = made
            self.constants[made] = value
        return code.name(self._constant_names[identity])

    # ---- expressions

    def expr(self, expr: Expr, chain: Chain) -> ast.expr:
        """The code of the expression, for the innermost place of the chain."""
        if not isinstance(expr, Constant | Ref):
            place = self.place(expr, chain)
            if place.level is not chain[-1].level:
                made = self.inner(expr, self.until(place, chain))
                if isinstance(made, ast.Constant | ast.Name):
                    return made
                name = self._assigned(place, made, _hint(expr), expr.type)
                if isinstance(expr, Read) and expr.field.owner == "cluster":
                    self.live.add(name)
                return code.name(name)
        return self.inner(expr, chain)

    def inner(self, expr: Expr, chain: Chain) -> ast.expr:
        """The code of the expression, computed just here."""
        match expr:
            case Constant(value=value):
                return self._literal(value)
            case Ref(binding=binding):
                key = self._named(binding, chain)
                found = chain[-1].name_of(key)
                assert found is not None, binding
                return code.name(found)
            case Read():
                return self._read(expr, chain)
            case Has():
                return self._has(expr, chain)
            case At():
                return self._at(expr, chain)
            case In(item=item, container=container):
                operands = [self.expr(item, chain), self.expr(container, chain)]
                if self.traced:
                    return self._reporting(expr, operands)
                if holds_doubles(container.type):
                    return code.call("_contains", operands[1], operands[0])
                return code.compare(operands[0], ast.In(), operands[1])
            case Op():
                return self._op(expr, chain)
            case Logic(operator=operator, items=items):
                joined = ast.And() if operator == "&&" else ast.Or()
                return ast.BoolOp(joined, [self.expr(item, chain) for item in items])
            case If(condition=condition, then=then, otherwise=otherwise):
                test = self.expr(condition, chain)
                return ast.IfExp(test, self.expr(then, chain), self.expr(otherwise, chain))
            case Apply():
                return self._apply(expr, chain)
            case Comprehend():
                return self._comprehend(expr, chain)
            case ListOf(items=items):
                return code.tuple_of([self.expr(item, chain) for item in items])
            case MapOf(entries=entries):
                keys: list[ast.expr | None] = [self.expr(k, chain) for k, _ in entries]
                return ast.Dict(keys, [self.expr(v, chain) for _, v in entries])
            case StructOf():
                return self._struct(expr, chain)
            case Text(parts=parts):
                return self._text(parts, chain)
            case NodeScore(node=node):
                named = chain[-1].name_of("scores") or "scores"
                return code.method(
                    code.name(named), "get", code.attribute(self.expr(node, chain), "name"), code.constant(0)
                )
            case LetIn():
                return self._let_in(expr, chain)
        raise AssertionError(expr)

    def _literal(self, value: bool | float | str) -> ast.expr:
        if isinstance(value, float) and not math.isfinite(value):
            return self.constant(value, "double")
        return code.constant(value)

    def zero(self, type: Type) -> ast.expr:
        value = zero_of(type)
        if isinstance(value, bool | int | float | str):
            return code.constant(value)
        if value == () and isinstance(type, List):
            return code.tuple_of([])
        return self.constant(value, f"no_{type.name}" if isinstance(type, Struct) else "nothing")

    # ---- fields and elements

    def _read(self, expr: Read, chain: Chain) -> ast.expr:
        if expr.field.owner == "cluster":
            objects = code.attribute(self.expr(expr.value, chain), "objects")
            return ast.Subscript(objects, code.constant(expr.field.name), ast.Load())
        value = code.attribute(self.expr(expr.value, chain), *expr.field.path)
        if expr.field.quantities:
            return code.call("_amounts", value)
        if expr.field.nullable:
            return ast.BoolOp(ast.Or(), [value, self.zero(expr.type)])
        return value

    def _has(self, expr: Has, chain: Chain) -> ast.expr:
        value = code.attribute(self.expr(expr.value, chain), *expr.field.path)
        if expr.field.nullable:
            return code.compare(value, ast.IsNot(), code.constant(None))
        if isinstance(expr.field.type, List | Map):
            return code.compare(code.call("len", value), ast.Gt(), code.constant(0))
        return code.compare(value, ast.NotEq(), self.zero(expr.field.type))

    def _at(self, expr: At, chain: Chain) -> ast.expr:
        value, key = self.expr(expr.value, chain), self.expr(expr.key, chain)
        if isinstance(expr.value.type, Map):
            return code.method(value, "get", key, self.zero(expr.type))
        if isinstance(key, ast.Constant) and key.value == 0:
            value = self.kept(value, chain)
            return ast.IfExp(value, ast.Subscript(value, key, ast.Load()), self.zero(expr.type))
        return code.call("_element", value, key, self.zero(expr.type))

    def kept(self, value: ast.expr, chain: Chain) -> ast.expr:
        """The value under a name, so that it can be read twice."""
        if isinstance(value, ast.Name | ast.Constant):
            return value
        return code.name(chain[-1].assign(value, "v"))

    # ---- operators

    def _op(self, expr: Op, chain: Chain) -> ast.expr:
        if isinstance(expr.type, Int) and expr.operator in ("+", "-", "*", "neg"):
            made = self._unwrapped(expr, chain)
            return made if fits_in_64_bits(expr) else code.call("_wrap", made)
        operands = [self.expr(operand, chain) for operand in expr.operands]
        if expr.operator in COMPARE:
            return self._reporting(expr, operands) if self.traced else self._comparison(expr, operands)
        match expr.operator, expr.type:
            case "!", _:
                return code.not_(operands[0])
            case "neg", _:
                return ast.UnaryOp(ast.USub(), operands[0])
            case "+", List():
                return ast.Tuple([ast.Starred(operand, ast.Load()) for operand in operands], ast.Load())
            case "/", Double():
                return code.call("_double_quotient", *operands)
            case "/", _:
                return code.call("_div", *operands, code.constant(0))
            case "%", _:
                return code.call("_remainder", *operands)
        return ast.BinOp(operands[0], ARITHMETIC[expr.operator](), operands[1])

    def _comparison(self, expr: Op, operands: Sequence[ast.expr]) -> ast.expr:
        if expr.operator in ("==", "!=") and holds_doubles(expr.operands[0].type):
            same = code.call("_same", *operands)
            return same if expr.operator == "==" else code.not_(same)
        return code.compare(operands[0], COMPARE[expr.operator](), operands[1])

    def _unwrapped(self, expr: Expr, chain: Chain) -> ast.expr:
        """Sums and products of ints without wrapping on the way: modulo 2**64 it makes no difference when they are
        wrapped, as long as they are before anything else looks at them."""
        ring = isinstance(expr, Op) and expr.operator in ("+", "-", "*", "neg")
        if not ring or self.place(expr, chain).level is not chain[-1].level:
            return self.expr(expr, chain)
        assert isinstance(expr, Op)
        operands = [self._unwrapped(operand, chain) for operand in expr.operands]
        if expr.operator == "neg":
            return ast.UnaryOp(ast.USub(), operands[0])
        return ast.BinOp(operands[0], ARITHMETIC[expr.operator](), operands[1])

    def _reporting(self, expr: In | Op, operands: Sequence[ast.expr]) -> ast.expr:
        self.sites.append(expr)
        return reporting(len(self.sites) - 1, expr, operands)

    # ---- functions

    def _apply(self, expr: Apply, chain: Chain) -> ast.expr:
        inlined = quick(self, expr, chain)
        if inlined is not None:
            return inlined
        arguments = [self.expr(a, chain) for a in expr.arguments]
        if expr.row.reads:
            arguments.insert(0, code.attribute(code.name("cluster"), "objects"))
        return ast.Call(self.constant(expr.row.run, expr.row.run.__name__), arguments, [])

    def _struct(self, expr: StructOf, chain: Chain) -> ast.expr:
        assert isinstance(expr.type, Struct)
        kind = struct_names()[expr.type.name]
        keywords = []
        for field, value in expr.fields:
            made = self.expr(value, chain)
            if field.quantities:
                made = code.call("_quantities", made)
            keywords.append(ast.keyword(field.path[0], made))
        return ast.Call(self.constant(kind, expr.type.name), [], keywords)

    def _text(self, parts: Sequence[str | Expr], chain: Chain) -> ast.expr:
        values: list[ast.expr] = []
        for part in parts:
            if isinstance(part, str):
                values.append(code.constant(part))
                continue
            made = self.expr(part, chain)
            if isinstance(part.type, Bool | Double):
                made = code.call("_to_string", made)
            values.append(ast.FormattedValue(made, -1, None))
        if all(isinstance(value, ast.Constant) or _fits_in_text(value) for value in values):
            return ast.JoinedStr(values)
        texts = [v if isinstance(v, ast.Constant) else code.call("_to_string", v.value) for v in values]  # type: ignore[attr-defined]
        return code.method(code.constant(""), "join", code.tuple_of(texts))

    def _let_in(self, expr: LetIn, chain: Chain) -> ast.expr:
        place = self.place(expr.value, chain)
        if place.level is chain[-1].level:
            place = chain[-1]
        made = self.expr(expr.value, self.until(place, chain))
        place.bind(expr.binding, self._assigned(place, made, expr.binding.name, expr.binding.type))
        return self.expr(expr.body, chain)

    # ---- loops

    def _comprehend(self, expr: Comprehend, chain: Chain) -> ast.expr:
        clauses, body, variables = self.looped(expr, chain)
        match expr.kind:
            case "all" | "exists":
                return code.call("all" if expr.kind == "all" else "any", ast.GeneratorExp(body, clauses))
            case "exists_one":
                return code.compare(code.count(clauses, body), ast.Eq(), code.constant(1))
            case "map":
                return code.call("tuple", ast.ListComp(body, clauses))
        clauses[-1].ifs.append(body)
        if isinstance(expr.range.type, Map) and len(expr.variables) == 2:
            key, value = variables[0], variables[1]
            return ast.DictComp(code.name(key), code.name(value), clauses)
        kept = variables[-1] if isinstance(expr.range.type, List) else variables[0]
        return code.call("tuple", ast.ListComp(code.name(kept), clauses))

    def looped(self, expr: Comprehend, chain: Chain) -> tuple[list[ast.comprehension], ast.expr, list[str]]:
        """The clauses of a comprehension, its body, and the names of its variables."""
        ordered = expr.kind in ("filter", "map")
        inner = Inner(chain[-1], self.names)
        early, inside = self.enter(expr.variables, expr.range, inner, chain)
        names = [inner.names[v] for v in expr.variables]
        body = self.expr(expr.body, inside)
        used = code.read_in([body, *inner.clauses]) | ({*names} if expr.kind == "filter" else set())
        brought, values = self.bring(expr.range, expr.variables, names, early, chain, used, ordered=ordered)
        return [code.clause(brought, values), *inner.clauses], body, names

    def enter(
        self, variables: Sequence[Binding], range_: Expr, body: Place, chain: Chain
    ) -> tuple[Column | None, Chain]:
        """Names for the variables of a loop; where it can compute things early, if it can; and the chain inside."""
        for variable in variables:
            body.names[variable] = self.names.fresh(variable.name)
        own = dict(body.names)
        column: Column | None = None
        inside: list[Place] = []
        homes = self._before_node(range_, chain)
        for place in chain:
            inside.append(place)
            if place in homes:
                column = Column(place, self.names, dict(own), body=body, outer=column)
                inside.append(column)
        return column, (*inside, body)

    def _before_node(self, range_: Expr, chain: Chain) -> Sequence[Place]:
        """The functions, up to the last before a node (or a view's row) is looked at, where what a loop runs over is
        known; or, in the loop over what is known early, the columns of that."""
        with_node = [i for i, place in enumerate(chain) if "node" in place.names]
        frames = [i for i, place in enumerate(chain) if isinstance(place, Frame)]
        boundary = with_node[0] if with_node else frames[-1]
        if boundary == 0:
            return []
        last = chain[boundary - 1]
        needed = self.place(range_, chain)
        among = [*last.lineage()] if isinstance(last, Column) else [p for p in chain[:boundary] if isinstance(p, Frame)]
        kind = Column if isinstance(last, Column) else Frame
        return [place for place in among if isinstance(place, kind) and needed in place.lineage()]

    def run(
        self, range_: Expr, variables: Sequence[Binding], names: Sequence[str], early: Column | None, chain: Chain, *,
        ordered: bool,
    ) -> ast.expr:  # fmt: skip
        """What the loop runs over: the elements, or tuples of them and of what was computed early for each."""
        return self.bring(range_, variables, names, early, chain, None, ordered=ordered)[1]

    def bring(
        self, range_: Expr, variables: Sequence[Binding], names: Sequence[str], early: Column | None, chain: Chain,
        used: AbstractSet[str] | None, *, ordered: bool,
    ) -> tuple[Sequence[str], ast.expr]:  # fmt: skip
        """What the loop runs over, and the names that it gives to that: of what comes with an element only what is
        used, if that is known."""
        if early is None or early.parent is None:
            return names, self._elements(range_, len(variables), chain, ordered=ordered)
        if early.outer is None:
            home = early.parent
            brought: Sequence[str] = names
            values = self._elements(range_, len(variables), self.until(home, chain), ordered=ordered)
            if not early.own and not isinstance(values, ast.Name):
                made = code.call("tuple", values) if len(variables) == 2 else values
                values = code.name(home.assign(made, "range_"))
        else:
            further = None if used is None else used | code.read_in(early.clauses)
            brought, values = self.bring(range_, variables, names, early.outer, chain, further, ordered=ordered)
        return self._with_own(early, variables, brought, values, used) if early.own else (brought, values)

    def _with_own(
        self, early: Column, variables: Sequence[Binding], brought: Sequence[str], values: ast.expr,
        used: AbstractSet[str] | None,
    ) -> tuple[Sequence[str], ast.expr]:  # fmt: skip
        """The elements with what the column computes for each."""
        assert early.parent is not None
        kept = [n for n in (*brought, *early.own) if used is None or n in used] or [*brought[:1]]
        items = [code.name(n) for n in kept]
        each = code.tuple_of(items) if len(items) > 1 else items[0]
        rows = ast.ListComp(each, [code.clause(brought, values), *early.clauses])
        assert early.body is not None
        objects = {early.body.names[v] for v in variables if holds_objects(v.type)} | self.with_objects
        hint = early.body.names[variables[-1]]
        name = early.parent.assign(code.call("tuple", rows), f"each_{hint}")
        if objects & {*kept}:
            self.with_objects.add(name)
        return kept, code.name(name)

    def _elements(self, range_: Expr, variables: int, chain: Chain, *, ordered: bool) -> ast.expr:
        values = self.expr(range_, chain)
        if isinstance(range_.type, Map):
            if variables == 2:
                items = code.method(values, "items")
                return code.call("sorted", items) if ordered else items
            return code.call("sorted", values) if ordered else values
        return code.call("enumerate", values) if variables == 2 else values


def _fits_in_text(value: ast.expr) -> bool:
    """Before Python 3.12 an f-string cannot hold one of its own, nor a text that needs a backslash."""
    parts = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
    return all(not isinstance(part, str) or PLAIN_TEXT.fullmatch(part) for part in parts) and not any(
        isinstance(part, ast.JoinedStr) for part in ast.walk(value)
    )


def _hint(expr: Expr) -> str:
    match expr:
        case Read(field=field):
            return field.path[-1]
        case Apply(row=row):
            return row.run.__name__
        case At(value=value):
            return f"{_hint(value)}_at"
        case Ref(binding=binding):
            return binding.name
    return "v"
