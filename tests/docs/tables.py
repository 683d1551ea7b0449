"""The sections of `docs/language.md` that follow from the code: the tables of functions, types and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ksp.check import cost, functions, limits, providers, report, schema
from ksp.check.functions import Row
from ksp.check.types import show
from ksp.source import reading
from ksp.syntax import limits as syntax

ROOTS = ("Pod", "Node")  # these two have tables of their own, written by hand
HEADS = {"string": "Text", "list": "Lists", "map": "Maps"}


def _table(head: tuple[str, str], lines: Iterable[tuple[str, str]]) -> str:
    cells = [head, ("---", "---"), *lines]
    return "\n".join(f"| {a} | {b} |" for a, b in cells)


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


# ---- functions


def function_table() -> str:
    """Every row of the function table, by what it is a method of."""
    plain = [row for rows in functions.FUNCTIONS.values() for row in rows]
    methods = [row for rows in functions.METHODS.values() for row in rows]
    parts = [_functions("Functions", [(_first(row), row) for row in plain])]
    for receiver, head in HEADS.items():
        own = [(form, row) for row in methods for form in row.signatures_for(receiver)]
        parts.append(_functions(f"{head}: methods", own))
    structs = [
        (form, row) for row in methods for name in sorted(row.receivers - {*HEADS}) for form in row.signatures_for(name)
    ]
    structs += [(row.signature, row) for row in functions.ERROR_ROWS.values()]
    return "\n\n".join([*parts, _functions("Types of the API: methods and `error`", structs)])


def _first(row: Row) -> str:
    return row.signature.split(";")[0]


def _functions(head: str, lines: Iterable[tuple[str, Row]]) -> str:
    return _table((head, "what it gives"), [(_code(form), row.help) for form, row in lines])


# ---- types


def type_table() -> str:
    """The fields of every type but Pod and Node; `?` marks those of which the API tells absent from zero."""
    names = sorted(set(schema.struct_names()) - {*ROOTS})
    return _table(("type", "fields"), [(_code(name), _fields(name)) for name in names])


def _fields(name: str) -> str:
    fields = schema.fields_of(name)
    own = [_code(f"{n}: {show(f.type)}{'?' if f.nullable else ''}") for n, f in fields.items() if len(f.path) == 1]
    through = [n for n, f in fields.items() if len(f.path) > 1]
    return ", ".join(own) + (f"; and {', '.join(map(_code, through))} of its metadata" if through else "")


# ---- limits

LIMITS: tuple[tuple[str, int], ...] = (
    ("bytes of a file", reading.MAX_FILE_BYTES),
    ("tokens of a file", syntax.MAX_TOKENS),
    ("declarations of a file", syntax.MAX_DECLARATIONS),
    ("files that one file imports, directly or not, itself included", limits.FILES),
    ("brackets open at one place", syntax.MAX_DEPTH),
    ("blocks inside one another, the rule's own included", syntax.MAX_BLOCKS),
    ("height of an expression, counted as below", syntax.MAX_COST),
    ("type arguments inside one another", syntax.MAX_TYPE_DEPTH),
    ("characters of a number", syntax.MAX_NUMBER_LENGTH),
    ("expressions of a rule or function, with all that it calls and names put in", limits.SIZE),
    ("expressions of all rules and functions of a file, likewise", limits.TOTAL),
    ("expressions inside one another, likewise", limits.DEPTH),
    ("parameters and `let`s of a `fn`, together", limits.LOCALS),
    ("arguments of `min(…)` and `max(…)`", functions.FUNCTIONS["min"][0].arity[1]),
    ("passes nested in one another: the degree of a rule's cost", cost.DEGREES),
    ("goes through lists of a rule's own making, all told", cost.STEPS),
    ("items and characters, all told, of one value that a rule makes", cost.LARGEST),
    ("a priority's weight", providers.HEAVIEST),
    ("syntax errors of a file after which no more are looked for", syntax.MAX_ERRORS),
    ("other errors of one check that are kept", report.MOST),
)


def limit_table() -> str:
    return _table(("what", "at most"), [(what, f"{most:,}") for what, most in LIMITS])


SECTIONS: dict[str, Callable[[], str]] = {
    "functions": function_table,
    "types": type_table,
    "limits": limit_table,
}
