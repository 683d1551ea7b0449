"""The demo's API server: `ksp apiserver`, in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import click

from ksp.kube.errors import KubeError

PATIENCE = 120.0
"""Seconds for the server to load its objects and answer."""
POLL = 0.05
LAST_WORDS = 1.0
"""Seconds from the loss of a connection to the end of the server that lost it."""


@contextlib.asynccontextmanager
async def api_server(load: Sequence[Path], emulate: str, kubeconfig: Path) -> AsyncGenerator[Process, None]:
    """A server that holds the objects of these files, from when it answers; `kubeconfig` then says how to reach it.

    If the server ends by itself, what is done with it is cancelled, and a ClickException has the server's last words.
    """
    files = [argument for path in load for argument in ("--load", str(path))]
    command = [sys.executable, "-m", "ksp", "apiserver", "--port", "0", "--emulate", emulate, *files]
    process = await asyncio.create_subprocess_exec(
        *command, "--until-eof", "--kubeconfig-out", str(kubeconfig),
        stdin=PIPE, stdout=DEVNULL, stderr=PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(_its_end(process))
            try:
                await _is_there(kubeconfig)
                yield process
            except KubeError:
                await asyncio.wait({watch}, timeout=LAST_WORDS)
                raise
            finally:
                watch.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # the server's end comes before what it led to
    finally:
        await _end(process)


async def _its_end(process: Process) -> None:
    assert process.stderr is not None
    said = (await process.stderr.read()).decode(errors="replace").strip()
    code = await process.wait()
    raise click.ClickException(f"the API server ended: {said or f'exit code {code}'}")


async def _is_there(file: Path) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not file.exists():  # noqa: ASYNC110, ASYNC240 - a look at the disk takes no time
                await asyncio.sleep(POLL)
    except TimeoutError:
        raise click.ClickException(f"the API server does not answer after {PATIENCE:g} s") from None


async def _end(process: Process) -> None:
    """Asks the process to end, and waits; who does not want to wait for that ends it at once."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await process.wait()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise
