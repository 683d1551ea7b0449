"""One parse from the first token to the last, over all errors in between.

After an error the tokens are skipped to one from which parsing can go on without guessing much:

- a declaration's keyword that stands where only a declaration can: the declaration under way is given up;
- a statement's keyword, first on its line: the stack is cut to the innermost block, in which the statement is read;
- the `}` that closes the innermost brace, if that can be empty: what the braces hold is forgotten.

A brace that was skipped without its partner is remembered (`_skipped`), so that the partner does not close another.
"""

from __future__ import annotations

from typing import Any

from lark import Token

from ksp.source.diagnostic import Diagnostic
from ksp.source.text import Source, Span
from ksp.syntax import limits, mistakes, tree, words
from ksp.syntax.builder import Builder
from ksp.syntax.explain import CLOSERS, OPENERS, Trouble, explain
from ksp.syntax.lexer import scan
from ksp.syntax.machine import END, Items, Machine, load_grammar

_DECLARES = {
    "PREDICATE": "NAME",
    "PRIORITY": "NAME",
    "PROVIDER": "NAME",
    "PROFILE": "STRING",
    "IMPORT": "STRING",
    "TEST": "STRING",
}
"""Keywords that with a token of this kind after them can only start a declaration."""

_ENDS = frozenset(
    {"NAME", "INT", "FLOAT", "QUANTITY", "STRING", "RAW_STRING", "TRUE", "FALSE", "RPAR", "RSQB", "RBRACE"}
)
"""The tokens that an expression can end with."""

ANY = "*"
"""Among the broken names: any name may be missing."""


class Run:
    """A parse of `text[start:end]`, which is the source's text without its invisible characters."""

    def __init__(self, source: Source, text: str, first: str, start: int, end: int) -> None:
        grammar = load_grammar()
        scanned = scan(grammar.lexer, source, text, start, end)
        self.source = source
        self.text = text
        self.tokens = scanned.tokens
        self.lexical = scanned.diagnostics
        self.syntactic: list[Diagnostic] = []
        self.broken: set[str] = set() if scanned.is_complete else {ANY}
        self._given_up_at: set[int] = set()
        self.builder = Builder(source, self._interpolation)
        self.machine = Machine(grammar, first, lambda name: getattr(self.builder, name))
        self._depth = 0
        self._skipped: list[int] = []
        self._resumed = -1
        self._inserted = 0

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return [*self.lexical, *self.syntactic, *self.builder.diagnostics]

    @property
    def broken_at(self) -> list[int]:
        """Places in declarations that must be left out, in order."""
        return sorted({each.span.start for each in self.lexical} | self._given_up_at | self.builder.broken_at)

    def close(self) -> None:
        """Nothing is asked of it any more. It is in circles with its machine and its builder, and with these in all
        tokens, which the garbage collector alone would find."""
        del self.machine, self.builder

    # ---- the two uses

    def parse_file(self) -> tree.File:
        """All declarations that could be read."""
        position = 0
        while position < len(self.tokens) and len(self.syntactic) < limits.MAX_ERRORS:
            position = position + 1 if self._take(position) else self._recover(position)
        if position < len(self.tokens):
            self.broken.add(ANY)
        values = self.machine.values
        if len(values) == 1 and isinstance(values[0], tree.File):
            return values[0]
        return self.builder.start(values[0] if values and isinstance(values[0], Items) else None)

    def parse_expression(self) -> tree.Expr | None:
        """The whole as one expression; None at the first error."""
        for position in range(len(self.tokens)):
            if not self._take(position):
                self._report(position)
                return None
        value: tree.Expr = self.machine.values[0]
        return value

    def _interpolation(self, start: int, end: int) -> tree.Expr | None:
        inner = Run(self.source, self.text, "expression", start, end)
        self._inserted += len(inner.tokens)
        if self._inserted > limits.MAX_TOKENS:
            self._refuse_more(Span(self.source, start, end))
            return None
        inner.builder.heights = self.builder.heights
        value = inner.parse_expression()
        for each in inner.diagnostics:
            self.builder.report(each)
        inner.close()
        return value

    def _refuse_more(self, span: Span) -> None:
        if ANY not in self.broken:
            self.broken.add(ANY)
            self.syntactic.append(mistakes.too_many(span, "tokens in strings", limits.MAX_TOKENS))

    # ---- tokens

    def _take(self, position: int) -> bool:
        """Give the machine a token; False if it cannot stand here."""
        token = self._as_wanted(position)
        kind = token.type
        if kind in OPENERS:
            if self._depth >= limits.MAX_DEPTH:
                return False
            self._depth += 1
        elif kind in CLOSERS:
            if kind == "RBRACE" and self._skipped and self._skipped[-1] == self._innermost():
                self._skipped.pop()
                return True
            self._depth -= 1
        if self.machine.feed(token):
            return True
        self._depth = self._open()
        return False

    def _as_wanted(self, position: int) -> Token:
        """The token as what the grammar can have here: a keyword as a name, `>=` as two tokens."""
        token = self.tokens[position]
        if token.type == "NAME" or (token.type != "RELATION" and token.value not in words.KEYWORDS):
            return token
        machine = self.machine
        if machine.accepts(token.type):
            return token
        if token.value == ">=" and machine.accepts("MORETHAN"):
            return self._split(position)
        if token.type != "RELATION" and self._is_name(position) and machine.accepts("NAME"):
            return token.update(type="NAME")
        return token

    def _is_name(self, position: int) -> bool:
        """May this keyword be meant as a name? Not where it more likely starts what should come next."""
        token = self.tokens[position]
        if token.value not in words.STOPS:
            return True
        if self.tokens[position + 1].type == "COLON" and self.machine.accepts("BANG"):
            return True
        return not self._is_first(position) and not self.machine.accepts("BANG")

    def _split(self, position: int) -> Token:
        """`list<int>= e`: the sign is two."""
        whole = self.tokens[position]
        start = whole.start_pos or 0
        parts = [
            Token("MORETHAN", ">", start, whole.line, whole.column, whole.line, whole.column, start + 1),
            Token("EQUAL", "=", start + 1, whole.line, whole.column, whole.line, whole.column, start + 2),
        ]
        self.tokens[position : position + 1] = parts
        return parts[0]

    def _is_first(self, position: int) -> bool:
        """Does nothing stand before the token on its line?"""
        return position == 0 or self.tokens[position - 1].end_line != self.tokens[position].line

    # ---- what is open

    def _innermost(self) -> int:
        """The place on the stack of the innermost open brace, -1 if none is open."""
        values = self.machine.values
        return next((i for i in range(len(values) - 1, -1, -1) if _is(values[i], "LBRACE")), -1)

    def _open(self) -> int:
        return sum(1 for value in self.machine.values if isinstance(value, Token) and value.type in OPENERS)

    def _declaration(self) -> list[Any]:
        """What stands on the stack of the declaration under way, first its keyword."""
        values = self.machine.values
        return values[1:] if values and isinstance(values[0], Items) else values

    # ---- errors

    def _report(self, position: int) -> None:
        token = self.tokens[position]
        before = self.tokens[position - 1] if position else None
        if self.machine.accepts("IMPORT"):
            self.machine.reduce_before("IMPORT")
        elif self._is_first(position) and self.machine.accepts("DENY"):
            self.machine.reduce_before("DENY")
        trouble = Trouble(self.source, self.machine, token, before, self._is_first(position))
        if self._depth >= limits.MAX_DEPTH and token.type in OPENERS:
            self.syntactic.append(mistakes.nested_too_deeply(trouble.span, "brackets", limits.MAX_DEPTH))
        elif not self._is_consequence(trouble):
            self.syntactic.append(explain(trouble))
        under_way = self._declaration()
        if under_way and isinstance(under_way[0], Token):
            self._given_up_at.add(under_way[0].start_pos or 0)
        elif token.type == "NAME" and self.tokens[position + 1].type == "NAME":
            self.broken.add(self.tokens[position + 1].value)

    def _is_consequence(self, trouble: Trouble) -> bool:
        """Does the error follow from one that is reported already: a mistake in the characters of this statement, a
        keyword that was given as a name, or, at the end of a declaration, any mistake in it?"""
        first_token = trouble.statement() or trouble.before
        start = (first_token.start_pos or 0) if first_token is not None else 0
        if trouble.is_first and trouble.statement() is None:
            start = self.text.rfind("\n", 0, trouble.token.start_pos or 0)
        end = trouble.token.end_pos or 0
        if any(start <= each.span.start <= end for each in self.lexical):
            return True
        if trouble.token.value in self.builder.refused and trouble.accepts("BANG"):
            return True
        under_way = self._declaration()
        if not under_way or not isinstance(under_way[0], Token) or not self._ends_declaration(trouble):
            return False
        first = under_way[0].start_pos or 0
        return any(first <= each.span.start <= end for each in self.syntactic)

    def _ends_declaration(self, trouble: Trouble) -> bool:
        return trouble.token.type == END or trouble.token.type in _DECLARES

    def _recover(self, position: int) -> int:
        """Report what is wrong with a token, prepare the machine to go on, and return where."""
        self._report(position)
        self.builder.heights.clear()
        skipped: list[str] = []
        if position == self._resumed:
            self._skip(position, skipped)
            position += 1
        found_at = position
        while not self._resumes(position, skipped, position > found_at):
            self._skip(position, skipped)
            position += 1
            if position >= len(self.tokens):
                self._give_up()
                return position
        self._depth = self._open()
        self._resumed = position
        return position

    def _skip(self, position: int, skipped: list[str]) -> None:
        """Keep the brackets that are skipped without their partner."""
        kind = self.tokens[position].type
        if kind in OPENERS:
            skipped.append(kind)
        elif kind in CLOSERS and CLOSERS[kind] in skipped:
            while skipped.pop() != CLOSERS[kind]:
                pass

    def _resumes(self, position: int, skipped: list[str], is_later: bool) -> bool:
        """Can parsing go on at this token, the wrong one or a later one? If so, cut the stack for it."""
        token = self.tokens[position]
        if token.type == END or self._is_declaration(position, skipped):
            self._give_up()
            return True
        if token.type == "RBRACE" and "LBRACE" not in skipped:
            return self._close_innermost()
        if token.value in words.RESUME and (
            self._is_first(position) or (is_later and not skipped and self._follows_value(position))
        ):
            return self._cut_to_block(token.type, skipped)
        return False

    def _follows_value(self, position: int) -> bool:
        """Can a statement end before this token? Not inside of brackets, and not after an operator or a comma."""
        opened = next((v.type for v in reversed(self.machine.values) if isinstance(v, Token) and v.type in OPENERS), "")
        return opened not in ("LPAR", "LSQB") and self.tokens[position - 1].type in _ENDS

    def _is_declaration(self, position: int, skipped: list[str]) -> bool:
        token, after = self.tokens[position], self.tokens[min(position + 1, len(self.tokens) - 1)]
        if not self._is_first(position):
            return False
        start = token.start_pos or 0
        if start == 0 or self.text[start - 1] == "\n":
            return token.value in words.DECLARATIONS
        if token.type in _DECLARES:
            return _DECLARES[token.type] == after.type
        return token.type in ("CONST", "FN") and not skipped and self._innermost() < 0

    def _give_up(self) -> None:
        """Forget the declaration under way, but for its name."""
        match self._declaration():
            case [Token(type="IMPORT"), *_]:
                self.broken.add(ANY)
            case [Token(), Token(type="NAME" | "STRING") as name, *_]:
                self.broken.add(name.value.strip("\"'"))
        values = self.machine.values
        self.machine.cut(2 if values and isinstance(values[0], Items) else 1)
        self._skipped.clear()

    def _close_innermost(self) -> bool:
        brace = self._innermost()
        if brace < 0 or not self.machine.accepts_from(brace + 2, "RBRACE"):
            return False
        self.machine.cut(brace + 2)
        while self._skipped and self._skipped[-1] > brace:
            self._skipped.pop()
        return True

    def _cut_to_block(self, kind: str, skipped: list[str]) -> bool:
        """Cut the stack to the innermost place where a statement with this keyword can start."""
        machine = self.machine
        for height in range(len(machine.states), 0, -1):
            if machine.can_shift(height, kind) and self._declaration_height() < height:
                machine.cut(height)
                brace = self._innermost()
                while self._skipped and self._skipped[-1] > brace:
                    self._skipped.pop()
                self._skipped.extend([brace] * skipped.count("LBRACE"))
                return True
        return False

    def _declaration_height(self) -> int:
        """The states below the declaration under way."""
        values = self.machine.values
        return 2 if values and isinstance(values[0], Items) else 1


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, Token) and value.type == kind
