"""One at a time for each key; of those who wait, only the latest gets its turn.

    enter(k) ─▶ True at once      nobody has k
    enter(k) ─▶ waits             somebody has it: who waited before is sent away (False); this one comes next
    enter(k, insist=True)         as above, but a later one does not send it away: that one gets False at once
    leave(k) ─▶ the waiting one goes on (True), or k is free

So there are never more than two for a key, however slowly the work goes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(slots=True)
class _Line:
    waiting: asyncio.Future[bool] | None = None
    insists: bool = False


class LatestOnly:
    """The lines, by key. A key that nobody has takes no memory."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def contested(self, key: str) -> bool:
        """Whether somebody waits for what has the key now."""
        line = self._lines.get(key)
        return line is not None and _waits(line.waiting)

    async def enter(self, key: str, *, insist: bool = False) -> bool:
        """Wait for the turn. True: it has come, and `leave` must follow. False: another one took the place."""
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = _Line()
            return True
        if line.waiting is not None and _waits(line.waiting):
            if line.insists:
                return False
            line.waiting.set_result(False)
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        line.waiting, line.insists = turn, insist
        try:
            return await turn
        except asyncio.CancelledError:
            self._give_up(key, turn)
            raise

    def leave(self, key: str) -> None:
        """The work is done."""
        line = self._lines[key]
        if line.waiting is not None and _waits(line.waiting):
            line.waiting.set_result(True)
            line.waiting = None
        else:
            del self._lines[key]

    def _give_up(self, key: str, turn: asyncio.Future[bool]) -> None:
        """One who waited was cancelled, perhaps just as its turn came."""
        line = self._lines.get(key)
        if turn.done() and not turn.cancelled() and turn.result():
            self.leave(key)
        elif line is not None and line.waiting is turn:
            line.waiting = None


def _waits(turn: asyncio.Future[bool] | None) -> bool:
    """Not if it was cancelled a moment ago and has not noticed yet."""
    return turn is not None and not turn.done()
