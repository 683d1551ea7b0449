from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.kube.errors import OutcomeUnknownError
from ksp.kube.http.lines import LineSplitter


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=20), st.data())
def test_lines_do_not_depend_on_how_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines) + b"rest"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    splitter = LineSplitter()
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert found == [line.removesuffix(b"\r") for line in lines if line.removesuffix(b"\r")]
    assert splitter.rest() == b"rest"


def test_split_characters_and_line_ends() -> None:
    splitter = LineSplitter()
    text = '{"a":"ä€😀"}\r\n'.encode()
    found = [line for byte in text for line in splitter.feed(bytes([byte]))]
    assert found == [text.rstrip()]


async def test_a_long_line_in_small_chunks_is_linear() -> None:
    splitter = LineSplitter()
    chunk = b"x" * 1024
    async with asyncio.timeout(10):
        for number in range(32 * 1024):
            assert splitter.feed(chunk) == []
            if number % 1024 == 0:
                await asyncio.sleep(0)
        [line] = splitter.feed(b"\n")
    assert len(line) == 32 * 1024 * 1024


def test_the_bound_on_a_line() -> None:
    splitter = LineSplitter(longest=10)
    assert splitter.feed(b"0123456789") == []
    assert splitter.feed(b"\n0123") == [b"0123456789"]
    assert splitter.feed(b"456789") == []
    with pytest.raises(OutcomeUnknownError, match="longer than 10 bytes"):
        splitter.feed(b"0")
