"""A policy is tried in a process of its own, so that what it takes, and what it breaks, is not the scheduler's.

The child (`ksp vet`) sets its own limits before it looks at anything, reads the trial from its standard input, and
writes a verdict. It is alone in a session, so that it can be ended with all that it might have started, and has of the
environment only what Python needs. Whatever ends it instead of a verdict is told in a sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

import msgspec

from ksp.kube.timers import Timers
from ksp.runtime.reload.verdict import MOST_ANSWER, ChildLimits, Trial, Verdict, encoded_trial

INHERITED: Final = ("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV")
ADDED: Final = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",  # of NumPy: each thread takes address space
    "OMP_NUM_THREADS": "1",
    "KSP_DEBUG": "1",  # a fault of ksp ends in a traceback, whose last line is told
}
COMMAND: Final = (sys.executable, "-m", "ksp", "vet")
MOST_COMPLAINT: Final = 4096
"""Bytes of the child's standard error that are kept."""
MOST_SAID: Final = 4 * 1024 * 1024
"""Bytes after which the child is killed: it has gone mad."""


class Child:
    """Tries policies, one process for each. `command` is what is run; limits are added to it as arguments."""

    def __init__(
        self, timers: Timers, environ: Mapping[str, str], *, limits: ChildLimits | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:  # fmt: skip
        self.limits = limits or ChildLimits()
        self._timers = timers
        inherited = {name: environ[name] for name in INHERITED if name in environ}
        self._environ = inherited | ADDED | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
        self._command = tuple(command)

    async def vet(self, trial: Trial) -> Verdict:
        """The verdict on a policy; the process is at its end then, also if this is cancelled."""
        limits = self.limits
        arguments = (
            f"--cpu={limits.cpu}", f"--memory={limits.memory}", f"--seconds={ceil(limits.seconds)}",
            f"--files={limits.files}",
        )  # fmt: skip
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, *arguments, env=self._environ, start_new_session=True, cwd="/",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            return _failed(f"the policy cannot be tried: a process cannot be started: {error.strerror or error}")
        talk = asyncio.ensure_future(_talk(process, encoded_trial(trial)))
        patience = asyncio.ensure_future(self._timers.sleep(limits.seconds))
        try:
            await asyncio.wait({talk, patience}, return_when=asyncio.FIRST_COMPLETED)
            if not talk.done():
                return _failed(f"trying the policy took longer than {limits.seconds:g} s")
            return _verdict(*talk.result(), limits)
        finally:
            patience.cancel()
            if not talk.done():
                _kill(process)  # then all that it has said can be read, which its end waits for
            await asyncio.gather(talk, patience, return_exceptions=True)


async def _talk(process: asyncio.subprocess.Process, trial: bytes) -> tuple[bytes, bytes, int]:
    """The child's answer and complaint, no more of them than is of use, and how it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    _, answer, complaint = await asyncio.gather(
        _give(process.stdin, trial), _some(process, process.stdout, MOST_ANSWER),
        _some(process, process.stderr, MOST_COMPLAINT),
    )  # fmt: skip
    return answer, complaint, await process.wait()


async def _give(stdin: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its end says why it did not read
        stdin.write(data)
        await stdin.drain()
    stdin.close()


async def _some(process: asyncio.subprocess.Process, stream: asyncio.StreamReader, most: int) -> bytes:
    """The last so many bytes; the rest is read and dropped. Who says far too much is killed."""
    kept, said = b"", 0
    while chunk := await stream.read(65536):
        kept, said = (kept + chunk)[-most:], said + len(chunk)
        if said > MOST_SAID:
            _kill(process)
    return kept


def _kill(process: asyncio.subprocess.Process) -> None:
    """With all that it has started. It has not ended, or something that it started holds its pipes, so that nobody else
    can have its number."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _verdict(answer: bytes, complaint: bytes, code: int, limits: ChildLimits) -> Verdict:
    if code == 0:
        try:
            return msgspec.json.decode(answer, type=Verdict)
        except (msgspec.DecodeError, ValueError):
            return _failed("the process that tried the policy gave no verdict")
    if code == -signal.SIGALRM:
        return _failed(f"trying the policy took longer than {limits.seconds:g} s")
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        killed = "" if code == -signal.SIGXCPU else ", or was killed for want of memory, or for what it said"
        return _failed(f"trying the policy took more than {limits.cpu} s of processor time{killed}")
    last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    about = f"the process that tried the policy (with {limits.memory // 2**20} MiB of address space at most)"
    return _failed(f"{about} {how}{f': {last}' if last else ''}")


def _failed(message: str) -> Verdict:
    return Verdict(ok=False, stage="child", message=message)
