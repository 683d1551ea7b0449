"""Health, metrics and documents over HTTP, for probes, for Prometheus and for people.

    /healthz /livez /readyz     "ok", or 500 with the checks that fail
    /readyz?verbose             one line a check; ?exclude=NAME leaves one out
    /readyz/informer-sync       one check
    /metrics                    Prometheus' text format, or OpenMetrics' if asked for
    /configz                    the configuration that counts
    /policyz                    which policy decides (`ksp.runtime.status`)

The secure port has TLS, and lets nobody in whom the cluster does not allow it (`ksp.runtime.access`). The other one has
neither, so it listens on the loopback unless told otherwise. There a request must bear a loopback name as its Host, or
a web page that an operator looks at could read the answers (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Middleware
from prometheus_client import CollectorRegistry

from ksp.kube.errors import ConfigError
from ksp.runtime.listening import listening, port_of
from ksp.runtime.metrics import exposition

Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]

Check = Callable[[], str]
"""Says why it fails; "" if it does not."""

SHUTDOWN: Final = 2.0
"""Seconds that open requests have when the server stops."""
IDLE: Final = 60.0
"""Seconds that a connection may wait for a request, or be in the middle of its head."""

Document = Callable[[], str]
"""A page's text, as it is now: JSON, or YAML."""


class _NoGarbage(logging.Filter):
    """What is no HTTP is answered with 400, and is nothing for the log: anybody can send it, as often as he likes."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


_requests = logging.getLogger(f"{__name__}.requests")
_requests.addFilter(_NoGarbage())


@dataclass(frozen=True, slots=True)
class Guard:
    """What makes a port secure: TLS, and who decides on requests."""

    tls: ssl.SSLContext
    middleware: Middleware


class StatusServer:
    """Serves until stopped. `ready` are the checks of /readyz by name, `alive` those of /healthz and /livez; `ping` is
    one of each. `documents` are further pages, by path."""

    def __init__(
        self, registry: CollectorRegistry, ready: Mapping[str, Check], alive: Mapping[str, Check] | None = None,
        documents: Mapping[str, Document] | None = None,
    ) -> None:  # fmt: skip
        self._registry = registry
        self._documents = documents or {}
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._alive: Mapping[str, Check] = {"ping": _ping, **(alive or {})}
        self._ready: Mapping[str, Check] = {"ping": _ping, **ready}

    async def start(self, host: str, port: int, guard: Guard | None = None) -> int:
        """Listens; the port, which the system chooses if 0 is asked for. Raises ConfigError if it cannot be had."""
        app = web.Application(middlewares=_middlewares(host, guard))
        app.router.add_get("/metrics", self._metrics)
        for path, document in self._documents.items():
            app.router.add_get(path, _page(document))
        for path, checks in (("healthz", self._alive), ("livez", self._alive), ("readyz", self._ready)):
            app.router.add_get(f"/{path}", _all(path, checks))
            for name, check in checks.items():
                app.router.add_get(f"/{path}/{name}", _one(check))
        runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=SHUTDOWN,
            keepalive_timeout=IDLE,
            logger=_requests,
            handler_cancellation=True,  # for who has gone the API server is not asked
        )
        await runner.setup()
        assert runner.server is not None, "it is set up"
        try:
            self._listener = await listening(runner.server, host, port, guard.tls if guard is not None else None)
        except OSError as error:
            await runner.cleanup()
            flag = "--port" if guard is None else "--secure-port"
            raise ConfigError(_cannot_listen(host, port, error, flag)) from error
        self._runner = runner
        return port_of(self._listener)

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()
        self._listener = self._runner = None

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = exposition(self._registry, request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})


def is_loopback(host: str) -> bool:
    """Whether an address, or a name, can be reached from this machine only."""
    name = host.strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _ping() -> str:
    return ""


def _cannot_listen(host: str, port: int, error: OSError, flag: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: choose another with {flag}, or 0 for none"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} may not be used: choose one above 1023 with {flag}"
    return f"cannot listen on port {port} of {host}: {error.strerror or error}"


def _middlewares(host: str, guard: Guard | None) -> list[Middleware]:
    if guard is not None:
        return [guard.middleware]
    return [_loopback_only] if is_loopback(host) else []


def _page(document: Document) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def respond(request: web.Request) -> web.Response:
        text = document()
        kind = "application/json" if text.startswith("{") else "application/yaml"
        return web.Response(text=text, content_type=kind)

    return respond


@web.middleware
async def _loopback_only(request: web.Request, handler: Respond) -> web.StreamResponse:
    host = request.headers.get("Host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() and not host.endswith("]") else host
    if not is_loopback(name):
        return web.Response(status=403, text=f"the host {name or '(none)'} is not this machine's loopback\n")
    return await handler(request)


def _all(path: str, checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def respond(request: web.Request) -> web.Response:
        excluded = frozenset(request.query.getall("exclude", ()))
        fails = [name for name, check in checks.items() if name not in excluded and check()]
        if fails:
            text = "".join(_lines(checks, excluded)) + f"{path} check failed\n"
            return web.Response(status=500, text=text)
        if "verbose" in request.query:
            return web.Response(text="".join(_lines(checks, excluded)) + f"{path} check passed\n")
        return web.Response(text="ok")

    return respond


def _lines(checks: Mapping[str, Check], excluded: frozenset[str]) -> Iterator[str]:
    for name, check in checks.items():
        if name in excluded:
            yield f"[+]{name} excluded: ok\n"
        elif why := check():
            yield f"[-]{name} failed: {why}\n"
        else:
            yield f"[+]{name} ok\n"


def _one(check: Check) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def respond(request: web.Request) -> web.Response:
        why = check()
        return web.Response(status=500, text=why + "\n") if why else web.Response(text="ok")

    return respond
