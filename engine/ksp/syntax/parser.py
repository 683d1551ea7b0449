"""Text to tree: `parse` for a file. It never raises, and reports all syntax errors that it can tell apart.

After an error it looks for a keyword from which it can go on: a statement of the same rule, or the next declaration. A
declaration in which anything is wrong is left out of the tree, and its name is listed, so that its absence is not
reported again wherever it is used.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.reading import MAX_FILE_BYTES, looks_like_policy, not_a_policy, too_large
from ksp.source.text import Source, Span
from ksp.syntax import limits, mistakes, tree
from ksp.syntax.lexer import hidden_characters
from ksp.syntax.recovery import ANY, Run


@dataclass(frozen=True, slots=True)
class ParseResult:
    """What could be read of a text.

    `broken` are the names of declarations that were left out; ANY is among them where an `import` was left out, or the
    text not read to its end, so that any name may be missing.
    """

    file: tree.File
    diagnostics: tuple[Diagnostic, ...] = ()
    broken: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """No error; warnings may be there."""
        return not any(diagnostic.severity is Severity.ERROR for diagnostic in self.diagnostics)


def _refused(source: Source, diagnostic: Diagnostic) -> ParseResult:
    """Nothing of the text was read."""
    return ParseResult(tree.File(Span(source, 0, len(source.text)), ()), (diagnostic,), frozenset({ANY}))


def parse(source: Source) -> ParseResult:
    """The declarations of a text, and what is wrong with the rest."""
    if len(source.text.encode("utf-8", "surrogatepass")) > MAX_FILE_BYTES:
        return _refused(source, too_large(source.name))
    if not looks_like_policy(source.text):
        return _refused(source, not_a_policy(source.name))
    text, hidden = hidden_characters(source)
    run = Run(source, text, "start", 0, len(text))
    file = run.parse_file()
    result = _without_broken(file, hidden, run)
    run.close()
    return result


def _without_broken(file: tree.File, hidden: list[Diagnostic], run: Run) -> ParseResult:
    errors = sorted(run.broken_at + [each.span.start for each in hidden if each.severity is Severity.ERROR])
    broken = set(run.broken)
    diagnostics = sorted(hidden + run.diagnostics, key=lambda each: each.span.start)
    kept: list[tree.Declaration] = []
    for declaration in file.declarations:
        place = bisect_left(errors, declaration.span.start)
        if place == len(errors) or errors[place] >= declaration.span.end:
            kept.append(declaration)
        elif isinstance(declaration, tree.Import):
            broken.add(ANY)
        else:
            broken.add(declaration.name)
    if len(kept) > limits.MAX_DECLARATIONS:
        extra = kept[limits.MAX_DECLARATIONS]
        diagnostics.append(mistakes.too_many(extra.span, "declarations", limits.MAX_DECLARATIONS))
        broken.add(ANY)
        del kept[limits.MAX_DECLARATIONS :]
    return ParseResult(tree.File(file.span, tuple(kept)), tuple(diagnostics), frozenset(broken))


def parse_expression(source: Source) -> tuple[tree.Expr | None, tuple[Diagnostic, ...]]:
    """The expression that a text is; None if anything is wrong with it."""
    text, hidden = hidden_characters(source)
    run = Run(source, text, "expression", 0, len(text))
    expression = run.parse_expression()
    diagnostics = tuple(sorted(hidden + run.diagnostics, key=lambda each: each.span.start))
    run.close()
    return (None if diagnostics else expression), diagnostics
