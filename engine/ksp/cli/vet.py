"""`ksp vet`: tries a policy for a scheduler that is about to reload it. No command for people: it is not listed.

It sets its limits before anything else, reads the trial from standard input, and writes a verdict to standard output:
the policy is checked and compiled as the scheduler will do it, its own tests are run, and each profile decides for
pods. Exits 0 with a verdict, whatever that is.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Final

import click

OOM_SCORE: Final = Path("/proc/self/oom_score_adj")


@click.command(hidden=True)
@click.option("--cpu", type=click.IntRange(1), required=True, help="Seconds of processor time.")
@click.option("--memory", type=click.IntRange(1), required=True, help="Bytes of address space.")
@click.option("--seconds", type=click.IntRange(1), required=True, help="Seconds on the clock.")
@click.option("--files", type=click.IntRange(3), required=True, help="Files that may be open.")
def vet(cpu: int, memory: int, seconds: int, files: int) -> None:
    """Try a policy: a trial on standard input, a verdict on standard output."""
    signal.alarm(seconds)  # it ends the process, also if the scheduler is not there any more to do that
    _die_first()
    _limit(cpu, memory, files)
    began = time.monotonic()
    try:
        answer = _verdict(began)
    except MemoryError:
        answer = _too_large(memory)
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()


def _die_first() -> None:
    """Where memory is short the kernel ends this process, and not the scheduler beside it."""
    with contextlib.suppress(OSError):
        OOM_SCORE.write_text("1000")


def _limit(cpu: int, memory: int, files: int) -> None:
    limits = {
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_NOFILE: (files, files),
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
    }
    for which, (soft, hard) in limits.items():
        _, most = resource.getrlimit(which)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(which, (soft, hard))


def _verdict(began: float) -> bytes:
    import msgspec

    from ksp.cli.vetting import vetted
    from ksp.runtime.reload.verdict import decoded_trial

    found = vetted(*decoded_trial(sys.stdin.buffer.read()))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return msgspec.json.encode(msgspec.structs.replace(found, seconds=time.monotonic() - began, memory=memory))


def _too_large(memory: int) -> bytes:
    """Written without anything that would take more memory."""
    message = b"trying the policy takes more than %d MiB of memory" % (memory // 2**20)
    return b'{"ok":false,"stage":"child","message":"' + message + b'"}'
