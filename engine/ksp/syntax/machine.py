"""The LR automaton of the grammar, driven one token at a time over a stack that recovery can look into and cut.

The table is lark's. The stack machine is ours, because lark's own reports an error by an exception in the middle of its
work, and because an expression takes a dozen steps `a -> b` that need no call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from lark import Token
from lark.grammar import Rule
from lark.lexer import BasicLexer
from lark.parsers.lalr_analysis import Shift

from ksp.syntax.table import load_parser

END = "$END"


class Items(list[Any]):
    """The children of a repeated part of the grammar, flat."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """A rule of the grammar: how many values it takes, what it makes, and where an absent part was."""

    size: int
    origin: str
    method: str
    absent: tuple[bool, ...]


Action = int | Reduction


@dataclass(frozen=True, slots=True)
class Grammar:
    """The table of actions by state and token, the same by state and rule, and the lexer."""

    actions: dict[int, dict[str, Action]]
    starts: dict[str, tuple[int, int]]
    lexer: BasicLexer


def _reduction(rule: Rule) -> Reduction:
    """Rules that lark makes of `x*` are lists, as are those that say so. One that stands for another makes nothing."""
    name = rule.origin.name
    passes = rule.options.expand1 and len(rule.expansion) == 1 and not rule.alias
    method = "" if passes else "items" if name.startswith("_") else rule.alias or name
    return Reduction(len(rule.expansion), name, method, tuple(rule.options.empty_indices))


@cache
def load_grammar() -> Grammar:
    """The automaton of ksp, once for the process."""
    parser = load_parser()
    known: dict[int, Reduction] = {}

    def action(kind: Any, argument: Any) -> Action:
        if kind is Shift:
            return int(argument)
        return known.setdefault(id(argument), _reduction(argument))

    confs = {start: parser.parse_interactive(start=start).parser_state.parse_conf for start in ("start", "expression")}
    states = confs["start"].states
    lexer = parser.parse_interactive("", start="start").lexer_thread.lexer
    assert isinstance(lexer, BasicLexer)
    return Grammar(
        {state: {name: action(*entry) for name, entry in row.items()} for state, row in states.items()},
        {start: (conf.start_state, conf.end_state) for start, conf in confs.items()},
        lexer,
    )


def flatten(children: list[Any]) -> Items:
    """One list of all children; the first is taken over where it is a list, so that long ones cost no copies."""
    if children and isinstance(children[0], Items):
        result, rest = children[0], children[1:]
    else:
        result, rest = Items(), children
    for child in rest:
        if isinstance(child, Items):
            result.extend(child)
        else:
            result.append(child)
    return result


class Machine:
    """A parse under way. `values[i]` is what led from `states[i]` to `states[i + 1]`."""

    def __init__(self, grammar: Grammar, start: str, methods: Callable[[str], Callable[..., Any]]) -> None:
        first, self.last = grammar.starts[start]
        self.actions = grammar.actions
        self.states = [first]
        self.values: list[Any] = []
        self._methods = methods

    def feed(self, token: Token) -> bool:
        """Take a token; False if it cannot stand here. The end is taken only where the whole is complete."""
        if not self.accepts(token.type):
            return False
        self.reduce_before(token.type)
        target = self.actions[self.states[-1]].get(token.type)
        if isinstance(target, int):
            self.states.append(target)
            self.values.append(token)
        return True

    def reduce_before(self, kind: str) -> None:
        """Finish all that a token of this kind finishes; it must be one that is accepted."""
        actions, states = self.actions, self.states
        while True:
            action = actions[states[-1]].get(kind)
            if not isinstance(action, Reduction):
                return
            self._reduce(action)
            if states[-1] == self.last and kind == END:
                return

    def _reduce(self, rule: Reduction) -> None:
        states, values, size = self.states, self.values, rule.size
        if rule.method:
            children = values[-size:] if size else []
            if size:
                del values[-size:]
                del states[-size:]
            values.append(self._build(rule, children))
        else:
            del states[-1]
        target = self.actions[states[-1]][rule.origin]
        assert isinstance(target, int)
        states.append(target)

    def _build(self, rule: Reduction, children: list[Any]) -> Any:
        if rule.method == "items":
            return flatten(children)
        if rule.absent:
            given = iter(children)
            children = [None if absent else next(given) for absent in rule.absent]
        return self._methods(rule.method)(*children)

    def accepts(self, kind: str) -> bool:
        """Can a token of this kind stand here? Nothing is changed."""
        return self.accepts_from(len(self.states), kind)

    def accepts_from(self, height: int, kind: str) -> bool:
        """The same with only the lowest `height` states. Only the part of the stack that changes is copied."""
        base = height
        above: list[int] = []  # the stack is states[:base] + above
        while True:
            state = above[-1] if above else self.states[base - 1]
            action = self.actions[state].get(kind)
            if not isinstance(action, Reduction):
                return action is not None
            drop = min(action.size, len(above))
            del above[len(above) - drop :]
            base -= action.size - drop
            target = self.actions[above[-1] if above else self.states[base - 1]][action.origin]
            assert isinstance(target, int)
            if kind == END and target == self.last:
                return True
            above.append(target)

    def can_shift(self, height: int, kind: str) -> bool:
        """Would the state at this height take the token as it is?"""
        return isinstance(self.actions[self.states[height - 1]].get(kind), int)

    def cut(self, height: int) -> None:
        """Drop all above the lowest `height` states."""
        del self.states[height:]
        del self.values[height - 1 :]
