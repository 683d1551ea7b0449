"""`ksp apiserver`: a Kubernetes API in memory, for tests, demos and trying kubectl."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ksp.cli.terminal import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksp.apiserver import ApiServer


@dataclass(frozen=True, slots=True)
class _Settings:
    """The command line."""

    host: str
    port: int
    emulate: str
    load: tuple[str, ...]
    tls: bool
    token_auth: bool
    kubeconfig_out: Path | None
    ready_file: Path | None
    until_eof: bool
    controllers: bool


@click.command
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 is any free port.")
@click.option("--bind-address", "host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--emulate",
    type=click.Choice(["1.19", "1.36"]),
    default="1.36",
    show_default=True,
    help="Whose version of the API is answered.",
)
@click.option(
    "--load",
    multiple=True,
    metavar="PATH",
    help="Objects to begin with: a manifest, what `kubectl get -o yaml` printed, a folder, `-`; again for more.",
)
@click.option("--tls", is_flag=True, help="Serve https, with a certificate made for this run.")
@click.option("--token-auth", is_flag=True, help="Ask for a token: kubeconfig has those of admin, scheduler, nobody.")
@click.option(
    "--kubeconfig-out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a kubeconfig there when it serves.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write url, port and process id there, as JSON, when it serves.",
)
@click.option(
    "--controllers",
    is_flag=True,
    help="Play kubelets and controllers: pods run and go, budgets are counted, claims get volumes.",
)
@click.option("--until-eof", is_flag=True, help="End when standard input does: when whoever started it is gone.")
def apiserver(
    port: int, host: str, emulate: str, load: tuple[str, ...], tls: bool, token_auth: bool,
    kubeconfig_out: Path | None, ready_file: Path | None, until_eof: bool, controllers: bool,
) -> None:  # fmt: skip
    """Serve a Kubernetes API from memory, until Ctrl-C or SIGTERM.

    There is no etcd behind it, and without --controllers no kubelets and no controllers: what is written is kept until
    the process ends. Requests are answered as kube-apiserver of the emulated version answers them. Not for anything
    that matters.
    """
    if not _is_loopback(host) and not token_auth:
        raise click.UsageError("beyond this machine only with --token-auth: whoever reaches the port may do everything")
    if not _is_loopback(host) and not tls:
        click.echo("Without --tls the tokens, and all else, can be read on the network.", err=True)
    if until_eof and "-" in load:
        raise click.UsageError("--until-eof and --load - both want standard input")
    files = kubeconfig_out, ready_file
    asyncio.run(_serve(_Settings(host, port, emulate, load, tls, token_auth, *files, until_eof, controllers)))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(settings: _Settings) -> None:
    from ksp.apiserver import ApiServer
    from ksp.apiserver.server import new_tokens

    if settings.ready_file is not None:
        _remove(settings.ready_file)  # one of a run before would be taken for ours
    server = ApiServer(settings.emulate, tokens=new_tokens() if settings.token_auth else None)
    _load(server, settings.load)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if settings.until_eof:
        asyncio.get_running_loop().add_reader(sys.stdin, _read, stop)
    try:
        await server.start(settings.host, settings.port, tls=settings.tls)
    except OSError as error:
        raise click.ClickException(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error
    try:
        _say_so(server, settings)
        if settings.controllers:
            await _with_controllers(server, settings.emulate, stop)
        else:
            await stop.wait()
    finally:
        await server.stop()


async def _with_controllers(server: ApiServer, emulate: str, stop: asyncio.Event) -> None:
    """Until `stop`. They reach the server as everybody does."""
    from ksp.cli.controllers import play_controllers

    with tempfile.TemporaryDirectory(prefix="ksp-apiserver-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        _write(kubeconfig, server.kubeconfig())
        async with asyncio.TaskGroup() as tasks:
            controllers = tasks.create_task(play_controllers(kubeconfig, emulate))
            await stop.wait()
            controllers.cancel()


def _read(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin)
        stop.set()


def _load(server: ApiServer, paths: Iterable[str]) -> None:
    """Puts the objects of files into the server; the first mistake ends the command."""
    from ksp.apiserver.loading import CLASSES
    from ksp.apiserver.status import ApiStatusError
    from ksp.cli.manifest_objects import objects
    from ksp.sim.texts import ManifestError

    try:
        for found in sorted(objects(paths, sys.stdin.buffer), key=lambda each: each.value.get("kind") not in CLASSES):
            try:
                server.load([found.value])
            except ApiStatusError as error:
                raise found.error(str(error)) from None
    except ManifestError as error:
        raise click.ClickException(str(error)) from error


def _say_so(server: ApiServer, settings: _Settings) -> None:
    """Files first: who has read the line finds them."""
    if settings.kubeconfig_out is not None:
        _write(settings.kubeconfig_out, server.kubeconfig())
    if settings.ready_file is not None:
        _write(settings.ready_file, {"url": server.url, "port": server.port, "pid": os.getpid()})
    counts = server.state.store.counts()
    loaded = ", ".join(counted(counts[name], name.removesuffix("s")) for name in ("nodes", "pods") if name in counts)
    click.echo(f"{server.url} answers as Kubernetes {settings.emulate}" + (f": {loaded}" if loaded else ""))
    click.echo(_way_in(server, settings))
    sys.stdout.flush()


def _way_in(server: ApiServer, settings: _Settings) -> str:
    if settings.kubeconfig_out is not None:
        return f"kubectl --kubeconfig {settings.kubeconfig_out} get pods -A"
    if settings.tls or settings.token_auth:
        return "kubectl needs a kubeconfig: name a file with --kubeconfig-out"
    return f"kubectl --server {server.url} get pods -A"


def _write(path: Path, value: dict[str, Any]) -> None:
    """Whole or not at all: who waits for the file never reads half of it. Only the user may read it."""
    text = json.dumps(value, indent=2) + "\n"
    try:
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # new, and with mode 600
        temporary = Path(name)
        try:
            with os.fdopen(number, "w", encoding="utf-8") as stream:
                stream.write(text)
            temporary.replace(path)
        except BaseException:
            temporary.unlink()
            raise
    except OSError as error:
        raise _cannot_write(path, error) from error


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> click.ClickException:
    return click.ClickException(f"cannot write {path}: {error.strerror}")
