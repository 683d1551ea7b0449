"""One function for each mistake of syntax: the only place that words them. What is wrong with a whole file is in
`ksp.source.reading`."""

from __future__ import annotations

from ksp.source.diagnostic import Diagnostic, Note, Severity
from ksp.source.text import Span


def _error(
    code: str, message: str, span: Span, *, label: str = "", help: str = "", notes: tuple[Note, ...] = ()
) -> Diagnostic:
    return Diagnostic(code, Severity.ERROR, message, span, label, notes, help)


def _quoted(text: str, most: int = 30) -> str:
    """A user's text between backticks, on one line and short."""
    text = " ".join(text.split()).replace("`", "'")
    return f"`{text if len(text) <= most else text[:most] + '…'}`"


# ---- characters


def hidden_character(span: Span) -> Diagnostic:
    name = f"U+{ord(span.text[:1] or chr(0)):04X}"
    return _error(
        "KSP0105", f"the invisible character {name}", span, help="remove it; a string can write it as an escape"
    )


def byte_order_mark(span: Span) -> Diagnostic:
    message = "the text starts with a byte order mark"
    return Diagnostic("KSP0106", Severity.WARNING, message, span, help="save the file as UTF-8 without it")


def odd_blank(span: Span) -> Diagnostic:
    name = f"U+{ord(span.text[0]):04X}"
    return _error("KSP0107", f"{name} is no blank of ksp", span, help="write an ordinary space")


def stray_character(span: Span, help: str) -> Diagnostic:
    return _error("KSP0107", f"{_quoted(span.text)} means nothing here", span, help=help)


def not_ascii_name(span: Span) -> Diagnostic:
    help = "names have the letters a to z, digits and `_`; other text can stand in strings and comments"
    return _error("KSP0107", f"the name {_quoted(span.text)} has characters other than ASCII", span, help=help)


# ---- strings and numbers


def unterminated_string(span: Span, quote: str) -> Diagnostic:
    return _error("KSP0108", "the string does not end on its line", span, help=f"close it with `{quote}`")


def unknown_escape(span: Span) -> Diagnostic:
    help = 'escapes are `\\n \\t \\r \\\\ \\" \\\' \\$ \\xHH \\uHHHH \\UHHHHHHHH` and so on; `r"…"` takes none'
    return _error("KSP0109", f"{_quoted(span.text)} is not an escape", span, help=help)


def unclosed_interpolation(span: Span, quote: str) -> Diagnostic:
    other = "'" if quote == '"' else '"'
    return _error(
        "KSP0110",
        "`${` without its `}` in the same string",
        span,
        help=f"inside, write strings with `{other}`; for a dollar and a brace write `\\${{`",
    )


def brace_in_interpolation(span: Span) -> Diagnostic:
    help = "name the value in a `let` and write the name here"
    return _error("KSP0110", "the expression in `${…}` cannot hold a brace", span, help=help)


def empty_interpolation(span: Span) -> Diagnostic:
    help = "for a dollar and braces write `\\${}`"
    return _error("KSP0110", "`${}` holds no expression", span, help=help)


def plain_string_needed(span: Span, what: str) -> Diagnostic:
    return _error("KSP0111", f"{what} cannot hold `${{…}}`", span, help="write it out, or `\\$` for a dollar")


def malformed_number(span: Span) -> Diagnostic:
    text = span.text
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    suffix = text[len(digits) :]
    if suffix in ("s", "ms", "us", "ns", "h", "d", "min", "sec"):
        return _error("KSP0113", f"{_quoted(text)} looks like a duration", span, help="no rule sees time")
    if suffix in ("u", "U"):
        return _error("KSP0112", f"{_quoted(text)}: there are no unsigned numbers", span, help=f"write `{digits}`")
    help = "numbers are like `42`, `0x1F`, `1.5`, `1e3`; quantities like `500m`, `4cpu`, `1.5Gi`, `2G`"
    return _error("KSP0112", f"{_quoted(text)} is not a number", span, help=help)


def number_out_of_range(span: Span) -> Diagnostic:
    help = "an int has 64 bits: -9223372036854775808 to 9223372036854775807; a double is at most about 1.8e308"
    return _error("KSP0114", f"the number {_quoted(span.text)} is too large", span, help=help)


def percent_literal(span: Span, number: str) -> Diagnostic:
    if len(number) > 5:
        number = "80"
    help = f"`%` is the remainder; a share is `x * {number} / 100`, and a comparison `100 * a > {number} * b`"
    return _error("KSP0113", f"{_quoted(span.text)}: there are no percent literals", span, help=help)


# ---- brackets and ends


_CLOSING = {"(": ")", "[": "]", "{": "}"}


def unclosed_bracket(span: Span, opening: Span, found: str) -> Diagnostic:
    """`span` is where the bracket is missing."""
    closing = _CLOSING[opening.text]
    note = Note(opening, f"the `{opening.text}` opened here is not closed")
    return _error(
        "KSP0116", f"expected `{closing}`, found {found}", span, label=f"`{closing}` is missing", notes=(note,)
    )


def stray_bracket(span: Span) -> Diagnostic:
    return _error("KSP0117", f"`{span.text}` closes nothing", span, help="remove it, or open it before")


def mismatched_bracket(span: Span, opening: Span) -> Diagnostic:
    closing = _CLOSING[opening.text]
    note = Note(opening, f"this `{opening.text}` is open")
    return _error("KSP0116", f"expected `{closing}`, found `{span.text}`", span, notes=(note,))


# ---- words of other languages


def assignment_as_comparison(span: Span) -> Diagnostic:
    return _error("KSP0118", "`=` does not compare", span, label="did you mean `==`?")


def foreign_operator(span: Span, meant: str) -> Diagnostic:
    return _error("KSP0119", f"there is no operator {_quoted(span.text)}", span, label=f"did you mean `{meant}`?")


def foreign_statement(span: Span, help: str) -> Diagnostic:
    return _error("KSP0119", f"there is no {_quoted(span.text)} in ksp", span, help=help)


def no_null(span: Span) -> Diagnostic:
    help = "what is absent reads as its type's zero; `has(x.field)` and `key in map` tell whether it is there"
    return _error("KSP0119", "there is no `null` in ksp", span, help=help)


# ---- what is missing


def missing_when(span: Span, keyword: str, found: str) -> Diagnostic:
    form = f"{keyword} when CONDITION" if keyword == "stop" else f'{keyword} "…" when CONDITION'
    help = f"write `{form}`; for always, `when true`"
    return _error(
        "KSP0120", f"a `{keyword}` needs a condition, found {found}", span, label="`when` is missing", help=help
    )


def missing_reason(span: Span, keyword: str) -> Diagnostic:
    what = "a reason" if keyword == "deny" else "a message"
    help = f'write `{keyword} "why" when CONDITION`'
    return _error("KSP0121", f"a `{keyword}` needs {what}, found {_quoted(span.text)}", span, help=help)


def empty_text(span: Span, keyword: str) -> Diagnostic:
    what = "reason" if keyword == "deny" else "message"
    help = "users read it in the events of their pods: say why"
    return _error("KSP0121", f"the {what} of a `{keyword}` is empty", span, help=help)


def reason_not_literal(span: Span, keyword: str) -> Diagnostic:
    what = "reason" if keyword == "deny" else "message"
    help = "so that all of them are known; put values in it with `${…}`"
    return _error("KSP0121", f"the {what} of a `{keyword}` must be a string literal", span, help=help)


def keyword_as_name(span: Span, what: str) -> Diagnostic:
    message = f"`{span.text}` is a keyword and cannot name {what}"
    return _error("KSP0122", message, span, help="choose another name")


def unexpected(span: Span, expected: str, found: str, near: str = "", form: str = "") -> Diagnostic:
    """`near` is a keyword that may be meant, `form` how the statement is written as a whole."""
    message = f"expected {expected}, found {found}" if expected else f"{found} cannot stand here"
    label = f"did you mean `{near}`?" if near else ""
    return _error("KSP0115", message, span, label=label, help=f"the form is `{form}`" if form else "")


def after_expression(span: Span, found: str) -> Diagnostic:
    return _error("KSP0115", f"{found} cannot follow an expression", span, help="is an operator missing, or a `,`?")


def unknown_declaration(span: Span, near: str) -> Diagnostic:
    help = "declarations start with `import`, `const`, `fn`, `predicate`, `priority`, `provider`, `profile` or `test`"
    label = f"did you mean `{near}`?" if near else ""
    return _error("KSP0124", f"{_quoted(span.text)} starts no declaration", span, label=label, help=help)


def statement_outside_rule(span: Span) -> Diagnostic:
    help = "put it between the braces of a `predicate` or `priority`"
    return _error("KSP0124", f"`{span.text}` stands outside of a rule", span, help=help)


def unknown_statement(span: Span, near: str) -> Diagnostic:
    label = f"did you mean `{near}`?" if near else ""
    help = "statements start with a keyword, such as `let`, `deny`, `for` or `score`"
    return _error("KSP0125", f"{_quoted(span.text)} starts no statement", span, label=label, help=help)


# ---- limits


def nested_too_deeply(span: Span, what: str, most: int) -> Diagnostic:
    return _error("KSP0123", f"{what} nested more than {most} deep", span, help="name parts of it with `let` or `fn`")


def expression_too_deep(span: Span) -> Diagnostic:
    return _error("KSP0123", "this expression is too deep", span, help="name parts of it with `let` or `fn`")


def too_many(span: Span, what: str, most: int) -> Diagnostic:
    return _error("KSP0126", f"more than {most} {what} in one text", span, help="split it and `import` the parts")
