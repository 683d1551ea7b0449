"""The server: sockets, TLS, Host and Origin, and the life of connections. `ApiServer` is what others use."""

import asyncio
import contextlib
import ipaddress
import logging
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import trustme
import yaml
from aiohttp import web

from ksp.apiserver import bootstrap, loading
from ksp.apiserver.access import AUTHENTICATED, MASTERS, Access
from ksp.apiserver.clock import Clock, RandomDice, SystemClock, sleep
from ksp.apiserver.dispatch import Request, dispatch, warning_headers
from ksp.apiserver.handlers.watches import Watch
from ksp.apiserver.http import bodies
from ksp.apiserver.http.negotiation import clauses
from ksp.apiserver.resources import catalogue
from ksp.apiserver.state import Answer, State
from ksp.apiserver.status import ApiStatusError, bad_request, plain_error, too_many_requests
from ksp.apiserver.store import Store
from ksp.apiserver.strategy import User
from ksp.apiserver.versions import VERSIONS

Json = dict[str, Any]

GZIP_ABOVE: Final = 128 * 1024
"""Bytes from which an answer is compressed, when that is asked for."""
HEADER_LIMIT: Final = 64 * 1024
"""Bytes of a request line, and of a header."""

MOST_WATCHES: Final = 5_000
"""At a time; more are refused."""
PATIENCE: Final = 60.0
"""Seconds after which a watcher that takes nothing from its socket is disconnected."""

_log: Final = logging.getLogger("ksp.apiserver")

STATIC_USERS: Final = {
    "admin": User("admin", (MASTERS, AUTHENTICATED), "1"),
    "scheduler": User("system:kube-scheduler", (AUTHENTICATED,), "2"),
    "nobody": User("nobody", (AUTHENTICATED,), "3"),
}
"""Users with a token, when tokens are asked for."""


def new_tokens() -> dict[str, User]:
    """A token for each of the static users, the administrator's first."""
    dice = RandomDice()
    return {dice.token(): user for user in STATIC_USERS.values()}


class ApiServer:
    """An embedded Kubernetes API on a loopback port: for tests, demos and trying kubectl. Nothing is kept on disk."""

    def __init__(
        self,
        emulate: str = "1.36",
        *,
        clock: Clock | None = None,
        seed: int | None = None,
        tokens: Mapping[str, User] | None = None,
        store: Store | None = None,
        uncached: Iterable[str] | None = None,
    ) -> None:
        """`emulate` is `1.19` or `1.36`. With `tokens` (bearer token → user) a request without one is refused, else

        whoever reaches the port may do everything.
        """
        version = VERSIONS[emulate]
        self.state = State(
            version=version,
            catalogue=catalogue(version.name),
            store=store or Store(),
            clock=clock or SystemClock(),
            dice=RandomDice(seed),
            uncached=set(uncached) if uncached is not None else set() if version.cached_events else {"events"},
        )
        self.access = Access(dict(tokens or {}), anonymous_is_admin=not tokens, newer=version.minor >= 36)
        bootstrap.fill(self.state)
        self._runner: web.ServerRunner | None = None
        self._server: web.Server | None = None
        self._host, self._port = "127.0.0.1", 0
        self._authority: trustme.CA | None = None
        self._tls: ssl.SSLContext | None = None
        self._watches: set[Watch] = set()

    # --- life

    async def start(self, host: str = "127.0.0.1", port: int = 0, *, tls: bool = False) -> None:
        """Serves; returns when connections are taken. Port 0 is any free one. Raises OSError."""
        if tls and self._tls is None:
            self._authority = trustme.CA()
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._authority.issue_cert("localhost", "127.0.0.1", "::1", host).configure_cert(self._tls)
        listener = _listen(host, port)
        self._host, self._port = host, listener.getsockname()[1]
        self._server = web.Server(
            self._serve,
            handler_cancellation=True,
            max_line_size=HEADER_LIMIT,
            max_field_size=HEADER_LIMIT,
            access_log=None,
            auto_decompress=False,  # kube-apiserver takes no compressed bodies either
        )
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.1)  # 0 is no limit to aiohttp
        await self._runner.setup()
        await web.SockSite(self._runner, listener, ssl_context=self._tls, backlog=1024).start()

    async def stop(self) -> None:
        """Closes the port and all connections at once; watches end with their final chunk where that still goes out."""
        runner, self._runner, self._server = self._runner, None, None
        for watch in tuple(self._watches):
            watch.end()
        if runner is not None:
            await runner.cleanup()

    async def restart(self, downtime: float = 0.0) -> None:
        """As a restarted process: connections are reset, objects stay, watch caches begin anew; the port stays."""
        self.drop_connections()
        await self.stop()
        if downtime:
            await sleep(self.state.clock, downtime)
        self.state.store.restart(self.state.version.restart_writes)
        await self.start(self._host, self._port, tls=self._tls is not None)

    def drop_connections(self) -> int:
        """Resets all connections, as a network does; gives their number."""
        if self._server is None:
            return 0
        handlers = list(self._server.connections)
        for handler in handlers:
            if handler.transport is not None:
                _reset(handler.transport)
        return len(handlers)

    def compact(self) -> None:
        """Forgets old versions, as an etcd compaction: lists and watches from before are too old."""
        self.state.store.compact()

    # --- for clients

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`: as this machine reaches it."""
        host = _EVERYWHERE.get(self._host, self._host)
        host = f"[{host}]" if ":" in host else host
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}"

    @property
    def authority_pem(self) -> bytes | None:
        """The certificate authority of `--tls`."""
        return None if self._authority is None else self._authority.cert_pem.bytes()

    def kubeconfig(self, user: str = "") -> Json:
        """As a dict, with a context for each user that has a token; `user` is the current one (the first if empty)."""
        users = {one.name: token for token, one in self.access.tokens.items()}
        return loading.kubeconfig(self.url, self.authority_pem, users, user)

    def load(self, objects: Iterable[Json]) -> int:
        """Takes objects as they are, with their status; gives their number. Raises ApiStatusError."""
        return loading.load(self.state, objects)

    # --- requests

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        warnings: list[str] = []
        try:
            self._check_origin(request)
            body = await _body(request)
            asked = Request(request.method, request.raw_path, request.headers, body)
            found = await dispatch(self.state, self.access, asked, f"{self._host}:{self._port}", warnings)
            if isinstance(found, Watch):
                return await self._stream(request, found, warnings)
            found.headers.extend(warning_headers(warnings))
            return _respond(request, found)
        except ApiStatusError as error:
            found = refusal(error)
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 it is logged with its traceback
            # As kube-apiserver does after a panic: the client is told, the log has the rest, the server goes on.
            _log.exception("%s %s", request.method, request.path)
            found = refusal(plain_error(500, _PANIC, "InternalError"))
        found.headers.extend(warning_headers(warnings))
        return _respond(request, found)

    def _check_origin(self, request: web.BaseRequest) -> None:
        """A page in a browser may not reach this server; on loopback not even by a name that leads here. Raises 403."""
        host = request.headers.get("Host", "")
        if _is_loopback(self._host) and not _is_loopback(_hostname(host)):
            raise plain_error(403, "the Host header does not name this machine", "Forbidden")
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise plain_error(403, "requests of pages from elsewhere are refused", "Forbidden")

    async def _stream(self, request: web.BaseRequest, watch: Watch, warnings: list[str]) -> web.StreamResponse:
        if len(self._watches) >= MOST_WATCHES:
            raise too_many_requests("too many watches are open", 1)
        response = web.StreamResponse(status=200, headers={"Content-Type": "application/json"})
        for name, value in warning_headers(warnings):
            response.headers.add(name, value)
        response.enable_chunked_encoding()
        with contextlib.suppress(ConnectionError):  # the client went away: that is how most watches end
            async with self._watching(watch):
                await response.prepare(request)
                while line := await watch.lines():
                    with self._patience(request):
                        await response.write(line)
                await response.write_eof()
        return response

    @contextlib.contextmanager
    def _patience(self, request: web.BaseRequest) -> Iterator[None]:
        """Ends the connection if what is done meanwhile takes too long."""
        transport = request.transport
        timer = self.state.clock.call_later(PATIENCE, transport.abort if transport is not None else _nothing)
        try:
            yield
        finally:
            timer.cancel()

    @contextlib.asynccontextmanager
    async def _watching(self, watch: Watch) -> AsyncIterator[None]:
        self._watches.add(watch)
        watch.start()
        try:
            yield
        finally:
            self._watches.discard(watch)
            watch.close()


_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The fast one is not built everywhere."""

_PANIC: Final = "This request caused apiserver to panic. Look in the logs for details."
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 an address to compare with
"""From addresses that mean all of them to one that leads here."""


def _nothing() -> None:
    """There is no connection any more."""


def _hostname(host: str) -> str:
    """Of a Host header; empty for what is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


def _reset(transport: asyncio.Transport | asyncio.BaseTransport) -> None:
    """Closes with RST and not with FIN: what is on its way is lost."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _body(request: web.BaseRequest) -> bytes:
    """At most a little more than the limit: who sends more is refused later, with the words for it. Raises 400."""
    if not request.can_read_body:
        return b""
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in request.content.iter_chunked(64 * 1024):
            chunks.append(chunk)
            size += len(chunk)
            if size > bodies.LIMIT:
                break
    except web.RequestPayloadError as error:
        raise bad_request(f"the body cannot be read: {error}") from None
    return b"".join(chunks)


def refusal(error: ApiStatusError) -> Answer:
    found = Answer(error.code, error.status)
    if error.retry_after is not None:
        found.headers.append(("Retry-After", str(error.retry_after)))
    if error.code == 403 and "forbidden: User" in error.status["message"]:
        found.headers.append(("X-Content-Type-Options", "nosniff"))
    return found


def _respond(request: web.BaseRequest, found: Answer) -> web.Response:
    content_type = found.content_type
    if isinstance(found.body, bytes):
        text = found.body
    elif _wants_yaml(request):
        text, content_type = yaml.dump(found.body, Dumper=_DUMPER).encode(), "application/yaml"
    else:
        text = msgspec.json.encode(found.body)
        if request.query_string and "pretty=" in request.query_string:
            text = msgspec.json.format(text, indent=2)
    response = web.Response(status=found.code, body=text)
    response.headers["Content-Type"] = content_type or "application/json"
    for name, value in found.headers:
        response.headers.add(name, value)
    if len(text) > GZIP_ABOVE and "gzip" in request.headers.get("Accept-Encoding", ""):
        response.body = zlib.compress(text, 4, wbits=31)
        response.headers["Content-Encoding"] = "gzip"
        response.headers.add("Vary", "Accept-Encoding")
    return response


def _wants_yaml(request: web.BaseRequest) -> bool:
    first = clauses(request.headers.get("Accept", ""))[:1]
    return bool(first) and first[0].media_type == "application/yaml"
