"""Expressions to code over arrays.

`Values.array` gives code whose value is an array with an element for each row: of bool, int64 or float64. What does not
read the node stays a Python value, computed by the emitter as far out as it can be. What reads only parts in which few
nodes differ, or has no form of its own here, is computed by the scalar code, part by part. Nothing here depends on
order: the language has no effects and no errors, so all operands of `&&`, `||` and `? :` may be computed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce

from ksp.check.typed import Apply, At, Comprehend, Constant, Expr, If, In, LetIn, Logic, NodeScore, Op, Read, Ref
from ksp.check.types import STRING, Bool, Double, Int, List, Map, Struct
from ksp.compile import code
from ksp.compile.columns.folds import Folds
from ksp.compile.columns.reads import PartOf, UnfitError, amounts_of_node, is_node, node_path, texts_of_node
from ksp.compile.columns.scope import ROWS, Scope, is_number
from ksp.compile.emit import ARITHMETIC, COMPARE, Chain
from ksp.compile.places import Branch
from ksp.compile.zeros import zero_of

FEW = 16  # operands in a row, as they are written
OF_ONE = {"abs": "_absolute", "round": "_rounded_all", "ln": "_logarithms", "sqrt": "_roots"}
SELECTORS = {
    ("NodeSelectorTerm", "Node"): "_term_holds_for_node",
    ("NodeSelectorTerm", "labels"): "_term_holds_for_labels",
    ("NodeSelectorRequirement", "labels"): "_requirement_holds",
    ("LabelSelector", "labels"): "_selector_holds",
}


class Values:
    """Makes the code of expressions in one column function."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    @property
    def folds(self) -> Folds:
        return Folds(self.scope, self)

    def operand(self, expr: Expr, chain: Chain) -> ast.expr:
        """An array or, of what does not read the node, a Python value."""
        return self.array(expr, chain) if self.scope.late(expr) else self.scope.early(expr, chain)

    def array(self, expr: Expr, chain: Chain) -> ast.expr:
        """Raises UnfitError if there is none."""
        if not self.scope.late(expr):
            return code.call("_filled", ROWS, self.scope.early(expr, chain))
        if isinstance(expr, Ref):
            return self._let(expr, chain)
        if not is_number(expr.type):
            raise UnfitError(f"values of type {type(expr.type).__name__.lower()} that differ from node to node")
        best = self.scope.by_parts(expr, chain, best=True)
        if best is not None:
            return best
        try:
            with self.scope.attempt(chain):
                return self._unless_by_parts(self._direct(expr, chain), expr, chain)
        except UnfitError:
            made = self.scope.by_parts(expr, chain)
            if made is None:
                raise
            return made

    def _unless_by_parts(self, made: ast.expr, expr: Expr, chain: Chain) -> ast.expr:
        """The code, unless an operand is computed by the parts that all of it reads."""
        if self.scope.asks_by_parts(made, expr, chain):
            raise UnfitError("what is computed by the same parts as one of its operands")
        return made

    def _let(self, expr: Ref, chain: Chain) -> ast.expr:
        """The array of a name, computed once: before loops, if it does not depend on them."""
        binding = expr.binding
        known = self.scope.array_of(binding, chain)
        if known is not None:
            return code.name(known)
        value = self.scope.emitter.lets.get(binding)
        if value is None:
            raise UnfitError("the node as a whole" if is_node(expr) else f"`{binding.name}`")
        at = self.scope.inside([value], chain)
        return self.scope.keep_array(binding, self.array(value, at), at)

    def _direct(self, expr: Expr, chain: Chain) -> ast.expr:
        match expr:
            case Op():
                return self._op(expr, chain)
            case Logic():
                return self._logic(expr, chain)
            case If():
                return self._if(expr, chain)
            case In():
                return self._in(expr, chain)
            case At():
                return self._at(expr, chain)
            case Read():
                return self._read(expr, chain)
            case Apply():
                return self._apply(expr, chain)
            case Comprehend(kind="all" | "exists" | "exists_one"):
                return self.scope.once(expr, chain, lambda at: self.folds.quantified(expr, at))
            case LetIn(binding=binding, value=value, body=body):
                self.scope.emitter.lets[binding] = value
                return self.array(body, chain)
            case NodeScore(node=node) if is_node(node) and self.scope.raw:
                return code.name(self.scope.raw)
        raise UnfitError(_what(expr))

    # ---- operators

    def _op(self, expr: Op, chain: Chain) -> ast.expr:
        kind = expr.operands[0].type
        if expr.operator in COMPARE:
            return self._comparison(expr, chain)
        operands = [self.operand(part, chain) for part in expr.operands]
        self.scope.noisy |= isinstance(kind, Double) or expr.operator in ("/", "%")
        match expr.operator, kind:
            case "!", _:
                return _not(operands[0])
            case "neg", Int() | Double():
                return ast.UnaryOp(ast.USub(), operands[0])
            case "/", Double():
                return ast.BinOp(operands[0], ast.Div(), operands[1])
            case "/", Int():
                return code.call("_divided", *operands, code.constant(0))
            case "%", Int():
                return code.call("_remainders", *operands)
            case (("+" | "-" | "*" as operator), Int() | Double()):
                return ast.BinOp(operands[0], ARITHMETIC[operator](), operands[1])
        raise UnfitError(_what(expr))

    def _comparison(self, expr: Op, chain: Chain) -> ast.expr:
        left, right = expr.operands
        if is_number(left.type):
            return code.compare(self.operand(left, chain), COMPARE[expr.operator](), self.operand(right, chain))
        if left.type == STRING and expr.operator in ("==", "!="):
            same = self._same_text(left, right, chain)
            return same if expr.operator == "==" else _not(same)
        raise UnfitError(_what(expr))

    def _same_text(self, left: Expr, right: Expr, chain: Chain) -> ast.expr:
        for mine, other in ((left, right), (right, left)):
            part = self.scope.reader.text(mine)
            if part is not None and not self.scope.late(other):
                made = self.scope.part(part, chain)
                return code.method(ROWS, "same_text", made, self.scope.early(other, chain))
        parts = [self.scope.reader.text(each) for each in (left, right)]
        if parts[0] is None or parts[1] is None:
            raise UnfitError("texts that are made of parts of the node")
        return code.call("_same_parts", ROWS, *(self.scope.part(part, chain) for part in parts if part is not None))

    def _logic(self, expr: Logic, chain: Chain) -> ast.expr:
        """The items that read the node, unless one that does not decides before them."""
        early = [item for item in expr.items if not self.scope.late(item)]
        late = [item for item in expr.items if self.scope.late(item)]
        conjunction = expr.operator == "&&"
        joined: ast.operator = ast.BitAnd() if conjunction else ast.BitOr()
        if not early:
            return self._joined(late, joined, chain)
        tests = [self.scope.early(item, chain) for item in early]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And() if conjunction else ast.Or(), tests)
        decided = code.call("_filled", ROWS, code.constant(not conjunction))
        if conjunction:
            return self._either(test, lambda at: self._joined(late, joined, at), lambda _: decided, chain)
        return self._either(test, lambda _: decided, lambda at: self._joined(late, joined, at), chain)

    def _joined(self, items: list[Expr], operator: ast.operator, chain: Chain) -> ast.expr:
        return _balanced([self.array(item, chain) for item in items], operator)

    def _if(self, expr: If, chain: Chain) -> ast.expr:
        if self.scope.late(expr.condition):
            parts = (self.operand(expr.then, chain), self.operand(expr.otherwise, chain))
            return code.call("_where", self.array(expr.condition, chain), *parts)
        return self._either(
            self.scope.early(expr.condition, chain),
            lambda at: self.array(expr.then, at),
            lambda at: self.array(expr.otherwise, at),
            chain,
        )

    def _either(
        self, test: ast.expr, then: Callable[[Chain], ast.expr], otherwise: Callable[[Chain], ast.expr], chain: Chain
    ) -> ast.expr:
        """One of two, by what is known early; the other is not computed."""
        here = self.scope.here(chain)
        branches = [Branch(here, self.scope.emitter.names) for _ in range(2)]
        made = [make((*chain, branch)) for make, branch in zip((then, otherwise), branches, strict=True)]
        if not any(branch.lines for branch in branches):
            return ast.IfExp(test, *made)
        name = self.scope.emitter.names.fresh("v")
        for branch, value in zip(branches, made, strict=True):
            branch.lines.append(code.assign(name, value))
        here.lines.append(ast.If(test, branches[0].lines, branches[1].lines))
        return code.name(name)

    # ---- fields, elements and keys

    def _read(self, expr: Read, chain: Chain) -> ast.expr:
        path = node_path(expr)
        if path is not None and path[0].name == "podCount":
            return code.method(ROWS, "pod_count")
        element = self.scope.reader.resolved(expr.value)
        if isinstance(element, At) and isinstance(element.value.type, List) and not self.scope.late(element.value):
            zero = getattr(zero_of(element.type), expr.field.path[0], None)
            if len(expr.field.path) == 1 and isinstance(zero, bool | int | float):
                numbers = self.folds.fields(element.value, expr, chain)
                return code.call("_chosen", ROWS, numbers, self.array(element.key, chain), code.constant(zero))
        raise UnfitError(_what(expr))

    def _at(self, expr: At, chain: Chain) -> ast.expr:
        value, key = expr.value, expr.key
        amounts = amounts_of_node(value)
        if amounts and not self.scope.late(key):
            return code.method(ROWS, "amounts", code.constant(amounts), self.scope.early(key, chain))
        if isinstance(value.type, Map) and not self.scope.late(value):
            part = self.scope.reader.text(key)
            if part is not None and not isinstance(expr.type, Bool):
                return self._gathered(expr, part, chain)
        if isinstance(value.type, List):
            zero = code.constant(zero_of(expr.type))
            if not self.scope.late(value):
                return code.call("_chosen", ROWS, self.scope.early(value, chain), self.array(key, chain), zero)
            if not self.scope.late(key):
                element = code.call("_element", self.folds.listed(value, chain), self.scope.early(key, chain), zero)
                return code.call("_as_array", ROWS, element)
        raise UnfitError(_what(expr))

    def _gathered(self, expr: At, part: PartOf, chain: Chain) -> ast.expr:
        """What a map that is known early has under a text of each row."""
        counts = self.scope.early(expr.value, chain)
        made = code.method(ROWS, "gather", counts, self.scope.part(part, chain))
        return code.call("_to_doubles", made) if isinstance(expr.type, Double) else made

    def _in(self, expr: In, chain: Chain) -> ast.expr:
        item, container = expr.item, expr.container
        if not self.scope.late(item):
            texts, amounts = texts_of_node(container), amounts_of_node(container)
            if texts:
                return code.call("_has_part", ROWS, self.scope.part(PartOf((texts,), item), chain))
            if amounts:
                return code.method(ROWS, "present", code.constant(amounts), self.scope.early(item, chain))
        elif not self.scope.late(container):
            part = self.scope.reader.text(item)
            if part is not None:
                return code.call("_part_in", ROWS, self.scope.part(part, chain), self.scope.early(container, chain))
            if is_number(item.type) and isinstance(container.type, List):
                return code.call("_among", ROWS, self.array(item, chain), self.scope.early(container, chain))
        raise UnfitError(_what(expr))

    # ---- functions

    def _apply(self, expr: Apply, chain: Chain) -> ast.expr:
        first = expr.arguments[0]
        match expr.row.name, first.type:
            case "matches", Struct(name) if len(expr.arguments) == 2 and not self.scope.late(first):
                return self._selected(name, expr, chain)
            case (("size" | "sum" | "min" | "max"), List()):
                return self.scope.once(expr, chain, lambda at: self.folds.folded(expr, at))
            case "div", Int() | Double():
                self.scope.noisy = True
                operands = [self.operand(a, chain) for a in expr.arguments]
                return code.call("_divided" if isinstance(first.type, Int) else "_ratio", *operands)
            case "int", Double():
                self.scope.noisy = True
                return code.call("_to_ints", self.array(first, chain))
            case "int", Int():
                return self.array(first, chain)
            case "double", Int():
                return code.call("_to_doubles", self.array(first, chain))
            case (("abs" | "round" | "ln" | "sqrt" as name), Int() | Double()):
                self.scope.noisy = True
                return code.call(OF_ONE[name], self.array(first, chain))
            case (("min" | "max" as name), Int() | Double()):
                operands = [self.operand(a, chain) for a in expr.arguments]
                return code.call("_smallest" if name == "min" else "_largest_of", *operands)
        raise UnfitError(_what(expr))

    def _selected(self, receiver: str, expr: Apply, chain: Chain) -> ast.expr:
        held, other = expr.arguments
        what = "Node" if is_node(other) else texts_of_node(other)
        function = SELECTORS.get((receiver, what))
        if function is None:
            raise UnfitError(_what(expr))
        return code.call(function, ROWS, self.scope.early(held, chain))


def _balanced(values: Sequence[ast.expr], operator: ast.operator) -> ast.expr:
    """All of them joined: a few from the left, many as a tree of little depth, since Python compiles no deep one."""
    if len(values) <= FEW:
        return reduce(lambda joined, value: ast.BinOp(joined, operator, value), values)
    middle = len(values) // 2
    return ast.BinOp(_balanced(values[:middle], operator), operator, _balanced(values[middle:], operator))


def _not(value: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Invert(), value)


def _what(expr: Expr) -> str:
    """What has no form over arrays, in a few words."""
    match expr:
        case Apply(row=row, arguments=arguments) if any(is_node(a) for a in arguments):
            return f"`{row.name}(…)` reads each node as a whole"
        case Apply(row=row):
            return f"`{row.name}(…)` of values that differ from node to node"
        case Constant() | Ref():
            return "a value"
    return "an expression over lists, texts or structs that differ from node to node"
