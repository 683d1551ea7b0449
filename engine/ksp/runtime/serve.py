"""Health and metrics over HTTP, for probes and for Prometheus.

    /healthz /livez /readyz     "ok", or 500 with the checks that fail
    /readyz?verbose             one line a check; ?exclude=NAME leaves one out
    /readyz/informer-sync       one check
    /metrics                    Prometheus' text format, or OpenMetrics' if asked for

There is neither TLS nor authentication, so it listens on the loopback unless told otherwise. There a request must bear
a loopback name as its Host, or a web page that an operator looks at could read the answers (DNS rebinding).
"""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry

from ksp.kube.errors import ConfigError
from ksp.runtime.metrics import exposition

Check = Callable[[], str]
"""Says why it fails; "" if it does not."""

SHUTDOWN: Final = 2.0
"""Seconds that open requests have when the server stops."""


class StatusServer:
    """Serves until stopped. `checks` are those of /readyz by name; /healthz and /livez have `ping` alone."""

    def __init__(self, registry: CollectorRegistry, checks: Mapping[str, Check]) -> None:
        self._registry = registry
        self._runner: web.AppRunner | None = None
        self._alive: Mapping[str, Check] = {"ping": _ping}
        self._ready: Mapping[str, Check] = {"ping": _ping, **checks}

    async def start(self, host: str, port: int) -> int:
        """Listens; the port, which the system chooses if 0 is asked for. Raises ConfigError if it cannot be had."""
        app = web.Application(middlewares=[_loopback_only] if is_loopback(host) else [])
        app.router.add_get("/metrics", self._metrics)
        for path, checks in (("healthz", self._alive), ("livez", self._alive), ("readyz", self._ready)):
            app.router.add_get(f"/{path}", _all(path, checks))
            app.router.add_get(f"/{path}/{{check}}", _one(checks))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await runner.cleanup()
            raise ConfigError(_cannot_listen(host, port, error)) from error
        self._runner = runner
        return int(runner.addresses[0][1])

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

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


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: choose another with --port, or 0 for no metrics and health checks"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} may not be used: choose one above 1023 with --port"
    return f"cannot listen on port {port} of {host}: {error.strerror or error}"


Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]


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


def _one(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def respond(request: web.Request) -> web.Response:
        check = checks.get(request.match_info["check"])
        if check is None:
            raise web.HTTPNotFound
        why = check()
        return web.Response(status=500, text=why + "\n") if why else web.Response(text="ok")

    return respond
