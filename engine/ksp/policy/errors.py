"""What keeps a policy from running: all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable

from ksp.source.diagnostic import Diagnostic
from ksp.source.render import in_order, render_text


class PolicyError(Exception):
    """`diagnostics` are the errors that have a place in a text of the policy language, `messages` the rest, each for a
    line of its own. There is one of either at least."""

    def __init__(self, diagnostics: Iterable[Diagnostic] = (), messages: Iterable[str] = ()) -> None:
        self.diagnostics = tuple(in_order(diagnostics))
        self.messages = tuple(dict.fromkeys(messages))
        super().__init__("; ".join((*map(_in_a_line, self.diagnostics), *self.messages)))

    def rendered(self, *, colored: bool = False, columns: int | None = None) -> str:
        """All of it for a person to read: diagnostics as `ksp check` shows them, then the messages."""
        shown = render_text(self.diagnostics, colored, columns)
        if shown and self.messages:
            shown += "\n"
        return shown + "".join(f"Error: {message}\n" for message in self.messages)


def _in_a_line(found: Diagnostic) -> str:
    return f"{found.span.where}: {found.code} {found.message}"
