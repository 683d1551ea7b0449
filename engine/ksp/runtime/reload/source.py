"""Where a policy's texts come from: what every source has, and why it may have none."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, Protocol

from ksp.policy.texts import PolicyTexts
from ksp.source.diagnostic import Diagnostic

MAX_FILES: Final = 500
"""Files of a policy, with its tests and what they name."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes of all of them. A ConfigMap has at most 1 MiB."""


class SourceError(Exception):
    """There are no texts: `messages` say why, each in a line, `diagnostics` do where a file cannot be a policy."""

    def __init__(self, *messages: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        found = [f"{each.span.source.name}: {each.message}" for each in diagnostics]
        super().__init__("; ".join((*messages, *found)))
        self.messages = messages
        self.diagnostics = tuple(diagnostics)


class PolicySource(Protocol):
    """What the flags name. `kind` says what it is, `name` which; `texts` are those that were read last, if any."""

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def texts(self) -> PolicyTexts | None: ...


class FilePolicySource(PolicySource, Protocol):
    """One that is read from files, at any time."""

    def read(self) -> PolicyTexts:
        """The texts as they are now, all of one moment. Raises SourceError."""
        ...

    def marks(self) -> Hashable:
        """Another value after a change of the files; cheap, and never an error."""
        ...

    @property
    def read_at(self) -> Hashable:
        """What `marks` was when the texts were read, or could not be."""
        ...
