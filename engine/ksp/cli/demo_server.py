"""The demo's API server: `ksp apiserver`, in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import click

PATIENCE = 120.0
"""Seconds for the server to load its objects and answer."""
POLL = 0.05


@contextlib.asynccontextmanager
async def api_server(load: Sequence[Path], emulate: str, kubeconfig: Path) -> AsyncGenerator[None, None]:
    """A server that holds the objects of these files, from when it answers; `kubeconfig` then says how to reach it."""
    files = [argument for path in load for argument in ("--load", str(path))]
    command = [sys.executable, "-m", "ksp", "apiserver", "--port", "0", "--emulate", emulate, *files]
    process = await asyncio.create_subprocess_exec(
        *command, "--kubeconfig-out", str(kubeconfig),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    said = asyncio.create_task(process.stderr.read())
    try:
        async with asyncio.timeout(PATIENCE):
            while not kubeconfig.exists():  # noqa: ASYNC240 - a look at the disk takes no time
                if process.returncode is not None:
                    raise click.ClickException(f"the API server ended: {(await said).decode().strip()}")
                await asyncio.sleep(POLL)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        await said
