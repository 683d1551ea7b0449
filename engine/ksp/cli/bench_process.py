"""A measurement in a process of its own, so that its memory and its caches are its own."""

from __future__ import annotations

import multiprocessing
import platform
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from traceback import format_tb
from typing import Any, Final, NoReturn

import click

from ksp.cli.profile_choice import chosen_profiles
from ksp.core.cycle import MOST_CLASSES
from ksp.core.scheduler import Scheduler
from ksp.runtime import heap
from ksp.sim.bench.figures import Conditions, Run
from ksp.sim.bench.records import flat, run_of
from ksp.sim.bench.rule_times import RuleTimes, WatchedRules
from ksp.sim.bench.runner import Surroundings, measure
from ksp.sim.bench.scenario import Size
from ksp.sim.bench.workloads import WORKLOADS
from ksp.sim.dice import SeededDice
from ksp.sim.stopwatch import ProcessorStopwatch, RunningStopwatch

Tell = Callable[[int], None]
UNITS_IN_MIB: Final = 1 << 20 if platform.system() == "Darwin" else 1 << 10
"""What getrusage counts memory in: bytes on macOS, KiB elsewhere."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A run, and the times of the rules if they were watched."""

    run: Run
    rules: tuple[RuleTimes, ...] | None = None


def measured_apart(conditions: Conditions, *, rules: bool, tell: Tell) -> Measured:
    """Measures in a new process, which does not outlive the call. `tell` hears how many pods have been decided."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=_in_child, args=(its, conditions, rules), daemon=True)
    with _ended_by_signals():
        process.start()
        its.close()
        try:
            return _received(mine, tell)
        except EOFError:
            process.join()
            raise click.ClickException(_how_it_ended(conditions, process.exitcode)) from None
        finally:
            process.kill()
            process.join()
            mine.close()


def measured_here(conditions: Conditions, *, rules: bool, tell: Tell) -> Measured:
    """Measures in this process. The collector of garbage is set as `ksp run` sets it: seldom, and not for what is there
    when measuring begins."""
    heap.prepare()
    profiles = chosen_profiles(conditions.policy, conditions.provider, conditions.percentage_of_nodes_to_score)
    stopwatch = RunningStopwatch()
    watched = WatchedRules(profiles, stopwatch) if rules else None

    def settle() -> None:
        heap.settle()
        if watched is not None:
            watched.reset()

    size = Size(conditions.nodes, conditions.pods, conditions.existing, conditions.pending, profiles[0].scheduler_name)
    scheduler = Scheduler(
        profiles if watched is None else watched.profiles, SeededDice(conditions.seed),
        equivalence_classes=MOST_CLASSES if conditions.equivalence_classes else 0, columns=conditions.columns,
    )  # fmt: skip
    around = Surroundings(stopwatch, ProcessorStopwatch(), _peak_memory, settle, tell)
    run = measure(conditions, WORKLOADS[conditions.workload](size), scheduler, around)
    return Measured(run, None if watched is None else tuple(watched.times()))


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNITS_IN_MIB


# ---- between the processes


def _in_child(parent: Connection, conditions: Conditions, rules: bool) -> None:
    """Tells the parent of progress, then what came of it. If the parent is gone, ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C, and ends this
    try:
        found = measured_here(conditions, rules=rules, tell=parent.send)
        parent.send((flat(found.run), found.rules))
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:  # noqa: BLE001  the parent raises it
        error.add_note("in the measuring process:\n" + "".join(format_tb(error.__traceback__)))
        parent.send(error)


def _received(connection: Connection, tell: Tell) -> Measured:
    while True:
        message: Any = connection.recv()
        if isinstance(message, Exception):
            raise message
        if not isinstance(message, int):
            run, rules = message
            return Measured(run_of(run), rules)
        tell(message)


def _how_it_ended(conditions: Conditions, code: int | None) -> str:
    how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with {code}"
    return f"measuring {conditions.workload} on {conditions.nodes:,} nodes: its process {how}"


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP interrupt, as Ctrl-C does, so that the other process goes too."""

    def interrupt(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    each = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, interrupt) for number in each]
    try:
        yield
    finally:
        for number, handler in zip(each, before, strict=True):
            signal.signal(number, handler)
