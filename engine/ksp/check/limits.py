"""How large a policy may be once its functions are put in, and what it may cost: decided before it is compiled.

Sizes are counted over the typed tree with each `fn` in the place of its call and each `let` and `const` in the place of
its name, without building that tree: what a name adds was counted when it was declared, so that no count goes deeper
than one declaration.
"""

from __future__ import annotations

from ksp.check import mistakes
from ksp.check.cost import DEGREES, STEPS, Analysis, show_cost
from ksp.check.parts import expressions
from ksp.check.report import Report
from ksp.check.stages import children
from ksp.check.typed import (
    Binding,
    Expr,
    Function,
    Invoke,
    Kind,
    Ref,
    Rule,
)
from ksp.source.text import Span

FILES = 64  # that one file may import, directly or not
SIZE = 10_000  # expressions of a rule or function, with all that it reads put in
TOTAL = 200_000  # expressions of all functions and rules of a file, likewise
DEPTH = 100  # expressions inside one another, likewise
LOCALS = 32  # parameters and lets of a function, all told
NAME_DEPTH = 2  # what reading a name adds to that: the compiler goes through more than one function to get at its value

Extent = tuple[int, int]
NONE: Extent = (0, 0)

_known: dict[int, tuple[Function | Binding, Extent]] = {}


def forget() -> None:
    """What was counted of other policies: it keeps their trees alive."""
    _known.clear()


def extent(expr: Expr) -> Extent:
    """How many expressions it is, and how deeply nested, with functions and names put in."""
    size, depth = NONE
    for child in children(expr):
        child_size, child_depth = extent(child)
        size, depth = size + child_size, max(depth, child_depth)
    inner_size, inner_depth = _behind(expr)
    return size + 1 + inner_size, depth + 1 + inner_depth


def _behind(expr: Expr) -> Extent:
    """What the name stands for."""
    if isinstance(expr, Invoke):
        return _declared(expr.function)
    if isinstance(expr, Ref) and expr.binding.value is not None and expr.binding.kind in (Kind.LET, Kind.CONST):
        size, depth = _declared(expr.binding)
        return size, depth + NAME_DEPTH
    return NONE


def _declared(named: Function | Binding) -> Extent:
    """The extent of a declaration, counted once."""
    known = _known.get(id(named))
    if known is not None and known[0] is named:
        return known[1]
    if len(_known) > 10_000:
        _known.clear()
    made = _function_extent(named) if isinstance(named, Function) else extent(named.value) if named.value else NONE
    _known[id(named)] = (named, made)
    return made


def _function_extent(function: Function) -> Extent:
    """A function's lets and arguments can become names of their own: each a level around its value."""
    parts = [extent(let.value) for let in function.lets if let.value is not None]
    parts.append(extent(function.value))
    names = len(function.lets) + len(function.parameters)
    return sum(size for size, _ in parts), names + max(depth for _, depth in parts)


def fits(report: Report, name: str, span: Span, made: Function | Expr) -> bool:
    """A function, or the value of a `let`, `const` or `param`, is not too large. What is, is reported here, once."""
    if isinstance(made, Function) and len(made.lets) + len(made.parameters) > LOCALS:
        mistakes.too_many(report, span, "parameters and lets in a function", LOCALS)
        return False
    size, depth = _function_extent(made) if isinstance(made, Function) else extent(made)
    return _within(report, name, span, size, depth)


def _within(report: Report, name: str, span: Span, size: int, depth: int) -> bool:
    if size > SIZE:
        mistakes.too_large(report, span, name, f"more than {SIZE:,} expressions")
    elif depth > DEPTH:
        mistakes.too_large(report, span, name, f"more than {DEPTH} expressions inside one another")
    return size <= SIZE and depth <= DEPTH


def check_function(report: Report, function: Function) -> int:
    """A function by itself: what it makes of arguments of the usual size. Its size."""
    analysis = Analysis(report)
    analysis.function(function)
    if analysis.steps > STEPS:
        mistakes.too_many_steps(report, function.span, function.name, STEPS)
    return _declared(function)[0]


def check_rule(report: Report, rule: Rule) -> int:
    """A rule: size, depth, how large what it makes can grow, how many passes are nested in one another. Its size."""
    extents = [extent(expr) for expr in expressions(rule)]
    size, depth = sum(size for size, _ in extents), max((depth for _, depth in extents), default=0)
    if not _within(report, rule.name, rule.span, size, depth):
        return 0
    analysis = Analysis(report)
    cost = analysis.rule(rule)
    if any(len(product) > DEGREES for product in cost):
        mistakes.too_costly(report, rule.span, rule.name, show_cost(cost))
    elif analysis.steps > STEPS:
        mistakes.too_many_steps(report, rule.span, rule.name, STEPS)
    return size
