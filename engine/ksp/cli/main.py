"""`ksp`: its commands, and the border that no traceback crosses.

What a command finds wrong it says itself, and ends with 1; a mistake on the command line ends with 2. Here the rest is
turned into a line: an interruption (130), a reader that went away (141), what the operating system refuses (1), and
faults of ksp itself (70).
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ksp import __version__
from ksp.cli.group import Entry, LazyGroup

COMMANDS = {
    "check": Entry("ksp.cli.check:check", "Find the mistakes in policies."),
    "test": Entry("ksp.cli.test:test", "Run the tests of policies."),
    "simulate": Entry("ksp.cli.simulate:simulate", "Schedule the pods of a cluster or a trace in virtual time."),
    "demo": Entry("ksp.cli.demo:demo", "Schedule the example cluster."),
    "run": Entry("ksp.cli.run:run", "Schedule the pods of a Kubernetes cluster."),
    "status": Entry("ksp.cli.status:status", "Show which policy a running scheduler decides by."),
    "apiserver": Entry("ksp.cli.apiserver:apiserver", "Serve a Kubernetes API from memory, to try things on."),
    "bench": Entry("ksp.cli.bench:bench", "Measure how fast pods are decided."),
    "footprint": Entry("ksp.cli.footprint:footprint", "Show what rules read, and which events can help a pod."),
    "cost": Entry("ksp.cli.cost:cost", "Show what rules cost, and which run over columns of nodes."),
    "compile": Entry("ksp.cli.compile:compile_", "Show the functions that rules are compiled to."),
    "bundle": Entry("ksp.cli.bundle:bundle", "Write a policy as the manifest of a ConfigMap."),
    "convert": Entry("ksp.cli.convert:convert", "Convert a legacy Policy of kube-scheduler."),
    "doc": Entry("ksp.cli.doc:doc", "Write a reference of policies, as Markdown."),
    "evaluate": Entry("ksp.cli.evaluate:evaluate", "Answer recorded cases, for comparison with kube-scheduler."),
    "rule": Entry("ksp.cli.rule:rule", "Explain a diagnostic by its code."),
    "vet": Entry("ksp.cli.vet:vet", ""),  # what `ksp run` calls before it takes a new policy
}
EPILOG = """\b
Start with:
  ksp demo                   where the pods of the example cluster go, and why
  ksp check FILE|DIR...      all mistakes in policies, with their places
  ksp rule KSP0201           what a diagnostic means, and how to mend it
"""

FAULT = 70

cli = LazyGroup(
    COMMANDS,
    name="ksp",
    help="A Kubernetes scheduler whose rules are text.",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(__version__, prog_name="ksp", message="%(prog)s %(version)s")(cli)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; what the process is to exit with."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file's name need not be text
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains when it flushes at exit
        return 141
    except OSError as error:
        return _say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error), 1)
    return code


def _open_streams() -> None:
    """A shell can close a standard stream (`>&-`); Python then has None in its place."""
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")


def _run(arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with cli.make_context("ksp", given) as context:
            cli.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted", 130)
    except OSError:
        raise
    except Exception as error:
        if os.environ.get("KSP_DEBUG"):
            raise
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        _say(f"internal error: {said}", FAULT)
        return _say("please report this with the command and its input; KSP_DEBUG=1 shows where it was", FAULT)
    return 0


def _say(message: str, code: int) -> int:
    click.echo(f"ksp: {message}", err=True)
    return code
