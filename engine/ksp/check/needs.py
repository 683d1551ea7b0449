"""Which names a declaration reads, before anything in it is checked: the order of declarations rests on it."""

from __future__ import annotations

from ksp.check.functions import MACROS
from ksp.syntax import tree
from ksp.syntax.walk import children


def names_in(node: tree.Function | tree.Const) -> set[str]:
    """The names of other declarations that its expressions read: not its parameters, lets and variables."""
    if isinstance(node, tree.Const):
        return free_names(node.value, frozenset())
    own = {parameter.name for parameter in node.parameters}
    found: set[str] = set()
    for let in node.lets:
        found |= free_names(let.value, frozenset(own))
        own.add(let.name)
    return found | free_names(node.value, frozenset(own))


def free_names(expr: tree.Expr, bound: frozenset[str]) -> set[str]:
    """The names that an expression reads but does not bind; a call's name is another kind of name, and never bound."""
    found: set[str] = set()
    pending = [(expr, bound)]
    while pending:
        part, hidden = pending.pop()
        match part:
            case tree.Name(name=name) if name not in hidden:
                found.add(name)
            case tree.Call(name=name):
                found.add(name)
            case tree.Method(name=name, arguments=[*variables, body]) if name in MACROS:
                names = {variable.name for variable in variables if isinstance(variable, tree.Name)}
                pending += [(part.value, hidden), (body, hidden | names)]
                continue
        pending += [(child, hidden) for child in children(part)]
    return found
