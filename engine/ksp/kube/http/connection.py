"""Connections to an API server that share one TLS context, and what their failures mean.

aiohttp repeats a DELETE or PUT by itself when a kept connection turns out to be closed; ksp decides that in
`ksp.kube.http.retries`, so the failure is turned into ksp's own before aiohttp sees it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import platform
import ssl
import traceback
from collections.abc import Sequence
from io import BytesIO

import aiohttp
from yarl import URL

from ksp import __version__
from ksp.kube.auth.cluster import Cluster
from ksp.kube.errors import KubeError, OutcomeUnknownError, UnreachableError
from ksp.kube.printable import printable

CONNECT_TIMEOUT = 10.0
"""Seconds until a connection stands, TLS included."""
IDLE_TIMEOUT = 15.0
"""Seconds that an unused connection is kept: less than any server or load balancer on the way keeps it."""

USER_AGENT = f"ksp/{__version__} ({platform.system().lower()}/{platform.machine()})"

Headers = Sequence[tuple[str, str]]


_CLOCK = "have it renewed, or correct this computer's clock"
_NAME = "use another address, or name the server in tls-server-name"
_ADVICE = {9: _CLOCK, 10: _CLOCK, 62: _NAME, 64: _NAME}
"""What to do, by OpenSSL's verification error (X509_V_ERR_...)."""


AUTHORITY = "correct certificate-authority in the kubeconfig"
LARGE = 2**20
"""Bytes of a body that is sent piece by piece, so that others have their turn."""

_CIRCULAR = ("aiohttp.", "aiohappyeyeballs.")
_CUT = "payload is not completed"
_NO_TLS = "WRONG_VERSION_NUMBER"
"""In aiohttp's words for an answer that ends too early."""


class Connections:
    """A pool. It is closed when it has been retired and nothing uses it any more."""

    def __init__(self, cluster: Cluster, tls: ssl.SSLContext | None, authority: str = AUTHORITY) -> None:
        """`authority` says what to do where the server's certificate is not trusted."""
        self.tls = tls
        self._authority = authority
        self._server = cluster.server
        self._proxy = cluster.proxy
        self._server_name = cluster.trust.server_name if tls is not None else None
        self._in_use = 0
        self._retired = False
        self._closing: asyncio.Task[None] | None = None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=IDLE_TIMEOUT, ssl=tls if tls is not None else True
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": USER_AGENT, "Accept": "application/json"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None, sock_read=None),
            middlewares=(self._without_repeats,),
        )

    async def open(
        self, method: str, target: str, headers: Headers, body: bytes | None, connect_timeout: float
    ) -> aiohttp.ClientResponse:
        """The answer's status and headers; its body is not read yet. `done` has to follow.

        UnreachableError or OutcomeUnknownError where there is no answer.
        """
        self._in_use += 1
        data = body if body is None or len(body) < LARGE else BytesIO(body)
        try:
            return await self._session.request(
                method,
                URL(self._server + target, encoded=True),
                data=data,
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy,
                server_hostname=self._server_name,
                timeout=aiohttp.ClientTimeout(total=None, connect=min(CONNECT_TIMEOUT, connect_timeout)),
            )
        except BaseException as error:
            await self._one_less()
            _let_go(error)
            if isinstance(data, BytesIO):
                data.close()
            if isinstance(error, aiohttp.ClientError | OSError):
                raise meaning(error, self._server, self._authority) from error
            raise

    async def done(self, response: aiohttp.ClientResponse) -> None:
        """The answer is not needed any more. A body that was not read to its end costs the connection."""
        response.close()
        await self._one_less()

    def retire(self) -> None:
        """Lets what is under way finish, then closes."""
        self._retired = True
        if self._in_use == 0:
            self._closing = asyncio.create_task(self._session.close())

    @property
    def closed(self) -> bool:
        return self._session.closed

    async def close(self) -> None:
        if self._closing is not None:
            await self._closing
        await self._session.close()

    async def _one_less(self) -> None:
        self._in_use -= 1
        if self._retired and self._in_use == 0:
            await self._session.close()

    async def _without_repeats(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        try:
            return await handler(request)
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            raise meaning(error, str(request.url.origin()), self._authority) from error


def _let_go(error: BaseException | None) -> None:
    """Empties those frames of aiohttp that led to the error, if they are at their end. They hold it, and the request
    with its body, in a circle, which the garbage collector may find only after hundreds of requests: of some megabytes
    each, if they are an extender's."""
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if str(frame.f_globals.get("__name__")).startswith(_CIRCULAR):
                with contextlib.suppress(RuntimeError):  # it runs yet
                    frame.clear()
        error = error.__cause__ or error.__context__


async def read_all(response: aiohttp.ClientResponse, server: str) -> bytes:
    """The whole body. OutcomeUnknownError where the connection is lost before its end, or it cannot be unpacked."""
    try:
        return await response.read()
    except (aiohttp.ClientError, OSError) as error:
        raise meaning(error, server) from error


async def read_some(response: aiohttp.ClientResponse, most: int) -> bytes:
    """At most `most` bytes of the body, and no more than came: what explains an error need not be whole."""
    parts: list[bytes] = []
    left = most
    try:
        while left > 0 and (part := await response.content.read(left)):
            parts.append(part)
            left -= len(part)
    except (aiohttp.ClientError, OSError):
        pass
    return b"".join(parts)


def meaning(error: Exception, server: str, authority: str = AUTHORITY) -> KubeError:
    """What a failure of aiohttp tells about the request. `authority` is as for `Connections`."""
    tls = _tls_error(error)
    if tls is not None and _refusal(tls):
        return UnreachableError(f"{server}: the server refuses the client certificate: {_cause(tls)}", temporary=False)
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return UnreachableError(f"{server}: {_distrust(error.certificate_error, authority)}", temporary=False)
        case aiohttp.ClientConnectorSSLError():
            hint = "; does the address begin with http://?" if getattr(tls, "reason", "") == _NO_TLS else ""
            return UnreachableError(f"{server}: TLS handshake failed: {_cause(tls or error)}{hint}")
        case aiohttp.ConnectionTimeoutError():
            return UnreachableError(f"{server}: no connection in time")
        case aiohttp.ClientConnectorDNSError():
            return UnreachableError(f"{server}: the name cannot be resolved: {_cause(error)}")
        case aiohttp.ClientHttpProxyError():
            return UnreachableError(f"{server}: the proxy answers {error.status} {error.message}")
        case aiohttp.ClientProxyConnectionError():
            return UnreachableError(f"{server}: its proxy cannot be reached: {_cause(error)}")
        case aiohttp.ClientConnectorError():
            return UnreachableError(f"{server}: {_cause(error)}")
        case aiohttp.ServerDisconnectedError():
            return OutcomeUnknownError(f"{server}: the connection was lost before an answer came")
        case aiohttp.ClientPayloadError() if _CUT in str(error):
            return OutcomeUnknownError(f"{server}: the connection was lost in the middle of an answer")
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError():
            return OutcomeUnknownError(f"{server}: the answer is no HTTP that can be read: {_nonsense(error)}")
        case _:
            return OutcomeUnknownError(f"{server}: the connection was lost: {_cause(tls or error)}")


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """The failure of TLS that `error` comes from. (Some of aiohttp's are SSLErrors too, without a reason.)"""
    while error is not None and (isinstance(error, aiohttp.ClientError) or not isinstance(error, ssl.SSLError)):
        error = error.__cause__
    return error


def _refusal(error: ssl.SSLError) -> bool:
    """Whether the server ended the handshake for the client's certificate. In TLS 1.3 that arrives after the request
    has been sent, which the server then does not read.
    """
    reason = getattr(error, "reason", None) or ""  # aiohttp makes such errors without one
    return "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason)


def _nonsense(error: Exception) -> str:
    """What aiohttp says of an answer that breaks the protocol. (It gives it the status 400, which nobody sent.)"""
    text = getattr(error, "message", "") or str(error)
    return printable(" ".join(text.removeprefix("400, message:").split()), 200)


def _cause(error: Exception) -> str:
    """The reason in a few words."""
    inner = getattr(error, "os_error", None) or error
    match inner:
        case ssl.SSLError():
            return (inner.reason or str(inner)).lower().replace("_", " ")
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number)
        case ConnectionResetError():
            return os.strerror(errno.ECONNRESET)
    text = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return " ".join(str(text).split())


def _distrust(error: Exception, authority: str) -> str:
    text = str(getattr(error, "verify_message", None) or error).rstrip(".")
    advice = _ADVICE.get(getattr(error, "verify_code", 0), authority)
    return f"the server's certificate is not trusted: {text}; {advice}"
