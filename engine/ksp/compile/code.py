"""Small pieces of Python syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def store(text: str) -> ast.Name:
    return ast.Name(text, ast.Store())


def constant(value: object) -> ast.Constant:
    return ast.Constant(value)  # type: ignore[arg-type]


def call(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(name(function), list(arguments), [])


def method(value: ast.expr, attribute: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(value, attribute, ast.Load()), list(arguments), [])


def attribute(value: ast.expr, *path: str) -> ast.expr:
    for part in path:
        value = ast.Attribute(value, part, ast.Load())
    return value


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.Compare:
    return ast.Compare(left, [operator], [right])


def tuple_of(items: Sequence[ast.expr]) -> ast.Tuple:
    return ast.Tuple(list(items), ast.Load())


def target(names: Sequence[str]) -> ast.expr:
    """What a loop assigns to."""
    if len(names) == 1:
        return store(names[0])
    return ast.Tuple([store(n) for n in names], ast.Store())


def clause(names: Sequence[str], values: ast.expr) -> ast.comprehension:
    return ast.comprehension(target(names), values, [], 0)


def function(function_name: str, parameters: Sequence[str], body: Sequence[ast.stmt]) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
    made = ast.FunctionDef(function_name, arguments, list(body) or [ast.Pass()], [], None)
    made.type_params = []  # type: ignore[attr-defined]
    return made


def assign(target_name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([store(target_name)], value)


def if_(condition: ast.expr, body: Sequence[ast.stmt]) -> ast.If:
    return ast.If(condition, list(body), [])


def return_(value: ast.expr) -> ast.Return:
    return ast.Return(value)


OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def not_(value: ast.expr) -> ast.expr:
    """The opposite of a truth; an ordering keeps its `not`, for the sake of NaN."""
    match value:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in OPPOSITE:
            return ast.Compare(left, [OPPOSITE[type(operator)]()], [right])
    return ast.UnaryOp(ast.Not(), value)


def count(clauses: list[ast.comprehension], condition: ast.expr) -> ast.expr:
    """How often the condition holds."""
    clauses[-1].ifs.append(condition)
    return call("sum", ast.GeneratorExp(constant(1), clauses))


def read_in(code_: Iterable[ast.AST]) -> set[str]:
    """The names that the code reads. What stands in it several times is gone through once."""
    found: set[str] = set()
    waiting = [*code_]
    seen: set[ast.AST] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                found.add(node.id)
        elif node not in seen:
            seen.add(node)
            waiting.extend(ast.iter_child_nodes(node))
    return found
