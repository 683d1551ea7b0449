"""Lines out of chunks: a chunk is not a line, and a line may be of any length up to a bound."""

from __future__ import annotations

from ksp.kube.errors import OutcomeUnknownError

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; etcd's objects are at most some megabytes, so a longer line is not an event."""


class LineSplitter:
    """Cuts a stream of bytes at newlines (LF or CR LF); empty lines are left out. Linear in what is fed."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._parts: list[bytes] = []  # of the line that has not ended; joined once
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in `chunk`, without their newlines. OutcomeUnknownError if a line is too long."""
        head, *rest = chunk.split(b"\n")
        self._keep(head)
        if not rest:
            return []
        *whole, tail = rest
        lines = [self.rest(), *whole]
        self._keep(tail)
        return [line for line in (line.removesuffix(b"\r") for line in lines) if line]

    def rest(self) -> bytes:
        """What has come since the last newline; it is forgotten."""
        line = b"".join(self._parts)
        self._parts.clear()
        self._length = 0
        return line

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._length += len(part)
        if self._length > self._longest:
            raise OutcomeUnknownError(f"a line of the stream is longer than {self._longest} bytes")
        self._parts.append(part)
