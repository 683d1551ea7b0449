"""Why a token cannot stand where it stands, in the user's terms: asked once for each syntax error."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

from lark import Token

from ksp.source.diagnostic import Diagnostic
from ksp.source.text import Source, Span
from ksp.syntax import mistakes, words
from ksp.syntax.machine import END, Machine

OPENERS = {"LPAR", "LSQB", "LBRACE"}
CLOSERS = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}
_PARTNERS = {opening: closing for closing, opening in CLOSERS.items()}

_NUMBER_BEFORE = re.compile(r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)[ \t]*\Z")

_OPERATORS = {"and": "&&", "or": "||", "not": "!", "mod": "%", "is": "==", "===": "==", "<>": "!="}
_STATEMENTS = {
    "if": "write `deny … when CONDITION`, `stop when CONDITION`, or `CONDITION ? a : b`",
    "else": "write a second statement with its own `when`, or `CONDITION ? a : b`",
    "elif": "write a second statement with its own `when`",
    "while": "every rule ends: `for x in LIST { … }` is the only loop",
    "foreach": "write `for x in LIST { … }`",
    "allow": "a rule says what it denies; what no rule denies is allowed. `stop when CONDITION` ends a rule",
    "permit": "a rule says what it denies; what no rule denies is allowed. `stop when CONDITION` ends a rule",
    "var": "write `let`",
    "def": "write `fn NAME(a: TYPE): TYPE = …`",
    "func": "write `fn NAME(a: TYPE): TYPE = …`",
    "function": "write `fn NAME(a: TYPE): TYPE = …`",
}
_NAMED = {
    "EQUAL": "`=`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "STRING": "a string",
    "INT": "a number",
}
_NAME_AFTER = {
    "LET": "a name after `let`",
    "CONST": "a name after `const`",
    "PARAM": "a name after `param`",
    "VIEW": "a name after `view`",
    "FN": "a name after `fn`",
    "DOT": "a field name after `.`",
    "PREDICATE": "a name after `predicate`",
    "PRIORITY": "a name after `priority`",
    "PROVIDER": "a name after `provider`",
    "FOR": "a name after `for`",
    "COLON": "a type",
    "LESSTHAN": "a type",
}
_FORMS = {
    "IMPORT": 'import "PATH"',
    "CONST": "const NAME = EXPR",
    "FN": "fn NAME(NAME: TYPE, …): TYPE = EXPR",
    "RETURN": "{ let … return EXPR }",
    "PREDICATE": "predicate NAME implements PLUGIN { … }",
    "PRIORITY": "priority NAME implements PLUGIN { … }",
    "PARAM": "param NAME: TYPE = EXPR",
    "LET": "let NAME = EXPR",
    "VIEW": "view NAME = count VAR in RELATION where CONDITION by KEY",
    "DENY": 'deny "REASON" when CONDITION',
    "FAIL": 'fail "MESSAGE" when CONDITION',
    "STOP": "stop when CONDITION",
    "FOR": "for NAME in LIST { … }",
    "PROVIDER": "provider NAME extends OTHER { predicates { … } priorities { … } }",
    "PREDICATES": "predicates { NAME, NAME(param: EXPR), … }",
    "PRIORITIES": "priorities { NAME: WEIGHT, … }",
    "PROFILE": 'profile "NAME" uses PROVIDER { SETTING = EXPR … }',
    "TEST": 'test "NAME" { … }',
    "EXPECT": "expect RULE admits|denies|scores|places POD on NODE …",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """A token that cannot stand where it is. `before` is the token before it; `machine` has finished what it could;
    `is_first` says that nothing stands before it on its line."""

    source: Source
    machine: Machine
    token: Token
    before: Token | None
    is_first: bool

    @property
    def span(self) -> Span:
        """The token; at the end of the text, what stands last."""
        if self.token.type == END and self.before is not None:
            return self.span_of(self.before)
        return self.span_of(self.token)

    def span_of(self, token: Token) -> Span:
        return Span(self.source, token.start_pos or 0, token.end_pos or 0)

    @property
    def gap(self) -> Span:
        """Where something is missing: before the token, or at the end of the line above if the token is first."""
        if self.before is not None and (self.is_first or self.token.type == END):
            end = self.before.end_pos or 0
            return Span(self.source, end, end)
        return self.span

    @property
    def found(self) -> str:
        return "the end of the text" if self.token.type == END else f"`{_short(self.token.value)}`"

    def accepts(self, kind: str) -> bool:
        return self.machine.accepts(kind)

    def opening(self) -> Token | None:
        """The innermost bracket that is open."""
        for value in reversed(self.machine.values):
            if isinstance(value, Token) and value.type in OPENERS:
                return value
        return None

    def statement(self) -> Token | None:
        """The keyword of the statement or declaration that is under way; None between two of them."""
        if self.machine.can_shift(len(self.machine.states), "DENY"):
            return None
        starts = words.RESUME | words.DECLARATIONS
        tokens = (value for value in reversed(self.machine.values) if isinstance(value, Token))
        return next((token for token in tokens if token.type != "NAME" and token.value in starts), None)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 30 else text[:30] + "…"


def _near(word: str, known: frozenset[str]) -> str:
    return next(iter(difflib.get_close_matches(word.lower()[:30], sorted(known), 1, 0.7)), "")


def explain(trouble: Trouble) -> Diagnostic:
    """The one diagnostic for the token."""
    for ask in _QUESTIONS:
        answer = ask(trouble)
        if answer is not None:
            return answer
    return _expected(trouble)


# ---- questions, the most certain first


def _interpolation(trouble: Trouble) -> Diagnostic | None:
    """`"${a["x"]}"`: the string ended at its own quote."""
    before = trouble.before
    if before is None or before.type != "STRING" or before.end_pos != trouble.token.start_pos:
        return None
    opened = before.value.rfind("${")
    if opened < 0 or "}" in before.value[opened:]:
        return None
    start = (before.start_pos or 0) + opened
    end = (before.end_pos or start) - 1
    return mistakes.unclosed_interpolation(Span(trouble.source, start, end), before.value[0])


def _percent(trouble: Trouble) -> Diagnostic | None:
    percent = trouble.before
    if percent is None or percent.type != "PERCENT":
        return None
    line = trouble.source.text[: percent.start_pos].rpartition("\n")[2]
    number = _NUMBER_BEFORE.search(line)
    if number is None:
        return None
    start = (percent.start_pos or 0) - len(line) + number.start()
    return mistakes.percent_literal(Span(trouble.source, start, percent.end_pos or 0), number[1])


def _comparison(trouble: Trouble) -> Diagnostic | None:
    if trouble.token.type != "EQUAL" or not trouble.accepts("RELATION"):
        return None
    before = trouble.before
    if before is not None and before.type == "RELATION" and before.end_pos == trouble.token.start_pos:
        return None
    return mistakes.assignment_as_comparison(trouble.span)


def _operator(trouble: Trouble) -> Diagnostic | None:
    token, before = trouble.token, trouble.before
    if before is not None and before.value == "not" and before.type == "NAME":
        return mistakes.foreign_operator(trouble.span_of(before), "!")
    if token.type == "NAME" and token.value.lower() in _OPERATORS and trouble.accepts("AND"):
        return mistakes.foreign_operator(trouble.span, _OPERATORS[token.value.lower()])
    if before is not None and before.end_pos == token.start_pos and before.value + token.value in _OPERATORS:
        pair = trouble.span_of(before).to(trouble.span)
        return mistakes.foreign_operator(pair, _OPERATORS[pair.text])
    return None


def _foreign(trouble: Trouble) -> Diagnostic | None:
    for token in (trouble.token, trouble.before):
        if token is not None and token.type == "NAME" and token.value in _STATEMENTS:
            return mistakes.foreign_statement(trouble.span_of(token), _STATEMENTS[token.value])
    return None


def _reason(trouble: Trouble) -> Diagnostic | None:
    before, token = trouble.before, trouble.token
    if before is None or before.type not in ("DENY", "FAIL", "UNRESOLVABLE") or not trouble.accepts("STRING"):
        return None
    keyword = "fail" if before.type == "FAIL" else "deny"
    if token.type in ("NAME", "LPAR") and not trouble.is_first:
        return mistakes.reason_not_literal(trouble.span, keyword)
    if token.value in words.CLAUSES | words.STATEMENTS or token.type in ("RBRACE", END):
        return mistakes.missing_reason(trouble.span if token.type != END else trouble.span_of(before), keyword)
    return None


def _when(trouble: Trouble) -> Diagnostic | None:
    statement = trouble.statement()
    if statement is None or statement.type not in ("DENY", "FAIL", "STOP") or not trouble.accepts("WHEN"):
        return None
    if trouble.token.type == "PLUS":
        return mistakes.reason_not_literal(trouble.span, statement.value)
    return mistakes.missing_when(trouble.gap, statement.value, trouble.found)


def _closing(trouble: Trouble) -> Diagnostic | None:
    """A closing bracket that fits nothing, or not the one that is open."""
    if trouble.token.type not in CLOSERS:
        return None
    opening = trouble.opening()
    if opening is None:
        return mistakes.stray_bracket(trouble.span)
    if CLOSERS[trouble.token.type] == opening.type:
        return None
    if not trouble.accepts(_PARTNERS[opening.type]):
        return None
    if trouble.is_first:
        return mistakes.unclosed_bracket(trouble.gap, trouble.span_of(opening), trouble.found)
    return mistakes.mismatched_bracket(trouble.span, trouble.span_of(opening))


def _unclosed(trouble: Trouble) -> Diagnostic | None:
    """The text or the rule goes on where a bracket should have been closed."""
    opening = trouble.opening()
    if opening is None:
        return None
    is_start = trouble.is_first and trouble.token.value in words.DECLARATIONS | words.STATEMENTS
    goes_on = trouble.token.type == END or is_start
    if not goes_on or not (trouble.accepts(_PARTNERS[opening.type]) or trouble.token.type == END):
        return None
    return mistakes.unclosed_bracket(trouble.gap, trouble.span_of(opening), trouble.found)


def _declaration(trouble: Trouble) -> Diagnostic | None:
    if not trouble.accepts("IMPORT") or trouble.token.type in CLOSERS:
        return None
    if trouble.token.value in words.STATEMENTS:
        return mistakes.statement_outside_rule(trouble.span)
    return mistakes.unknown_declaration(trouble.span, _near(trouble.token.value, words.DECLARATIONS))


def _statement(trouble: Trouble) -> Diagnostic | None:
    if not trouble.accepts("DENY") or not (
        trouble.is_first or trouble.machine.can_shift(len(trouble.machine.states), "DENY")
    ):
        return None
    if trouble.token.type in (END, *CLOSERS):
        return None
    return mistakes.unknown_statement(trouble.span, _near(trouble.token.value, words.STATEMENTS - {"return"}))


def _return(trouble: Trouble) -> Diagnostic | None:
    if not trouble.accepts("RETURN"):
        return None
    return mistakes.unexpected(trouble.gap, "`let` or `return`", trouble.found, form=_FORMS["RETURN"])


def _operand(trouble: Trouble) -> Diagnostic | None:
    """An expression should start here."""
    if not trouble.accepts("BANG"):
        return None
    after = f" after `{_short(trouble.before.value)}`" if trouble.before is not None else ""
    word = "the keyword " if trouble.token.type != "NAME" and trouble.token.value in words.KEYWORDS else ""
    return mistakes.unexpected(trouble.gap, f"an expression{after}", word + trouble.found)


def _more(trouble: Trouble) -> Diagnostic | None:
    """An expression is complete, and what follows neither continues it nor may come next."""
    if not trouble.accepts("PLUS"):
        return None
    choices = [_NAMED[kind] for kind in ("COMMA", "COLON", "RPAR", "RSQB", "RBRACE", "LBRACE") if trouble.accepts(kind)]
    if not choices or trouble.accepts("DENY") or trouble.accepts("IMPORT"):
        return mistakes.after_expression(trouble.span, trouble.found)
    return mistakes.unexpected(trouble.gap, _either(choices), trouble.found)


def _expected(trouble: Trouble) -> Diagnostic:
    """What would have been right, where that is short to say."""
    statement = trouble.statement()
    form = _FORMS.get(statement.type, "") if statement is not None else ""
    if trouble.accepts("NAME"):
        before = trouble.before
        what = _NAME_AFTER.get(before.type, "a name") if before is not None else "a name"
        return mistakes.unexpected(trouble.gap, what, trouble.found, form=form)
    keywords = [word for word in sorted(words.KEYWORDS) if trouble.accepts(word.upper())]
    near = _near(trouble.token.value, frozenset(keywords))
    choices = [text for kind, text in _NAMED.items() if trouble.accepts(kind)] + [f"`{word}`" for word in keywords]
    expected = _either(choices) if len(choices) <= 5 else ""
    return mistakes.unexpected(trouble.span if near else trouble.gap, expected, trouble.found, near, form)


def _either(choices: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(choices[:-1]), *choices[-1:]]))


_QUESTIONS: tuple[Callable[[Trouble], Diagnostic | None], ...] = (
    _interpolation,
    _percent,
    _comparison,
    _operator,
    _foreign,
    _reason,
    _when,
    _unclosed,
    _closing,
    _declaration,
    _return,
    _statement,
    _operand,
    _more,
)
