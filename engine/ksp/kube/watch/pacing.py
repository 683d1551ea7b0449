"""Long work in slices: between two of them everybody else on the loop has a turn."""

from __future__ import annotations

import asyncio
from typing import Final

# Decoding runs at some 200 MB/s, so a slice takes 1 to 2 ms.
SLICE_BYTES: Final = 256 * 1024

# What an object costs besides its bytes, in bytes: many small objects are slower than a few large ones.
_FIXED_BYTES: Final = 1024


class Pacer:
    """Counts the work of one task and gives way after each slice of it."""

    def __init__(self, slice_bytes: int = SLICE_BYTES) -> None:
        self._slice = slice_bytes
        self._left = slice_bytes

    async def spent(self, size: int) -> None:
        """An object of `size` bytes has been worked on."""
        self._left -= size + _FIXED_BYTES
        if self._left <= 0:
            self._left = self._slice
            await asyncio.sleep(0)
