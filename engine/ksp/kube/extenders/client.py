"""Asks one extender. Each question is a POST; nothing is repeated, nothing is followed, nothing is waited for longer
than the extender's timeout. What goes wrong is an ExtenderError that names the extender and says what to do.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import ssl
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeVar
from urllib.parse import quote, urlsplit

import aiohttp

from ksp.kube.auth.cluster import Cluster
from ksp.kube.auth.environment_proxy import proxy_for
from ksp.kube.errors import ConfigError, KubeError, OutcomeUnknownError, UnreachableError
from ksp.kube.extenders.trust import Stamp, context_of, stamp_of, trust_of
from ksp.kube.extenders.wire import (
    FilterResult,
    MalformedAnswerError,
    NodeBodies,
    Removal,
    VictimBodies,
    binding_args,
    extender_args,
    preemption_args,
    read_binding,
    read_filter,
    read_preemption,
    read_priorities,
)
from ksp.kube.http.connection import Connections, meaning, read_some
from ksp.kube.printable import printable
from ksp.kube.timers import Timers
from ksp.policy.extender import Extender

T = TypeVar("T")

Verb = Literal["filter", "prioritize", "preempt", "bind"]
Outcome = Literal["ok", "error", "status", "malformed", "timeout", "lost", "unreachable", "cancelled"]
Asked = Callable[[Extender, Verb, Outcome, float, str], None]
"""Is told of each question: to whom, for what, what came of it, after how many seconds, and why there is no answer."""

ROOM: Final = 16 * 2**20
"""Bytes that an answer may always have; and four times as many as the question had, which holds what it repeats."""
ANSWER_TO_BYTES: Final = 4
VALUES: Final = 200_000
"""Commas that an answer may always have; and twice as many as the question. What is read takes a microsecond or two,
and a hundred bytes, for each, while nothing else happens."""
ANSWER_TO_VALUES: Final = 2
SAID: Final = 1000
"""Bytes of an extender's own text that are shown."""
CONNECTING: Final = 0.8
"""The part of its time after which there has to be a connection: so that of what was never sent that is known."""
HEADERS: Final = (("Content-Type", "application/json"), ("Accept-Encoding", "identity"))
AUTHORITY: Final = "correct the authority in its tlsConfig"

_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")
_SAFE: Final = "/%:@!$&'()*+,;=~?"


class ExtenderError(KubeError):
    """There is no answer. `outcome` says why: the extender's own error, another status than 200, garbage, too late,
    lost, or it was not asked."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome: Outcome = outcome


class ExtenderClient:
    """One extender, over connections that are kept. `environ` may name a proxy, as for the API server."""

    def __init__(self, extender: Extender, timers: Timers, environ: Mapping[str, str], asked: Asked) -> None:
        self.extender = extender
        self._timers = timers
        self._environ = environ
        self._told = asked
        self._pool: Connections | None = None
        self._stamp: Stamp | None = None
        self._retired: list[Connections] = []

    async def filter(self, pod: bytes, nodes: NodeBodies) -> FilterResult:
        """Which of the nodes may take the pod (its JSON)."""
        body = extender_args(pod, nodes)
        return await self._asked("filter", self.extender.filter_verb, body, self._good)

    def _good(self, answer: bytes) -> FilterResult:
        result = read_filter(answer, by_name=self.extender.node_cache_capable)
        if result.error:
            raise self._says(result.error)
        return result

    async def prioritize(self, pod: bytes, nodes: NodeBodies) -> Mapping[str, int]:
        """How good each of the nodes is for the pod."""
        return await self._asked(
            "prioritize", self.extender.prioritize_verb, extender_args(pod, nodes), read_priorities
        )

    async def preempt(self, pod: bytes, victims: Mapping[str, VictimBodies]) -> Mapping[str, Removal]:
        """From which of the nodes others may have to go for the pod's sake, and who."""
        body = preemption_args(pod, victims, by_uid=self.extender.node_cache_capable)
        return await self._asked("preempt", self.extender.preempt_verb, body, read_preemption)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        """Have the pod bound to the node. An ExtenderError does not always say that it is not; see its outcome."""
        await self._asked("bind", self.extender.bind_verb, binding_args(name, namespace, uid, node), self._bound)

    def _bound(self, answer: bytes) -> None:
        error = read_binding(answer)
        if error:
            raise ExtenderError("error", printable(error, SAID))

    def retire(self) -> None:
        """No more questions: connections close when the last answer has come."""
        for pool in filter(None, [self._pool]):
            pool.retire()
            self._retired.append(pool)
        self._pool = None

    @property
    def closed(self) -> bool:
        """It is retired, and nobody waits for an answer any more."""
        return self._pool is None and all(pool.closed for pool in self._retired)

    async def close(self) -> None:
        """Ends all connections."""
        for pool in (*self._retired, *filter(None, [self._pool])):
            await pool.close()

    # ---- one question

    async def _asked(self, verb: Verb, path: str, body: bytes, read: Callable[[bytes], T]) -> T:
        began = self._timers.now()
        outcome: Outcome = "cancelled"
        why = ""
        try:
            answer = await self._answer(path, body)
            try:
                found = read(answer)
            except MalformedAnswerError as error:
                raise self._failed("malformed", f"cannot read its answer to {path}: {error}") from error
            outcome = "ok"
        except ExtenderError as error:
            outcome, why = error.outcome, str(error)
            raise
        finally:
            self._told(self.extender, verb, outcome, self._timers.now() - began, why)
        return found

    async def _answer(self, path: str, body: bytes) -> bytes:
        allowed = self.extender.timeout
        try:
            pool = self._connections()
            async with asyncio.timeout(allowed):
                target = f"/{quote(path, safe=_SAFE)}"
                response = await pool.open("POST", target, HEADERS, body, CONNECTING * allowed)
                try:
                    answer = await self._whole(response, path, ROOM + ANSWER_TO_BYTES * len(body))
                finally:
                    await pool.done(response)
        except TimeoutError as error:
            late = f"no whole answer to {path} in {allowed:g} s; raise its httpTimeout, or have it answer sooner"
            raise self._failed("timeout", late) from error
        except UnreachableError as error:
            raise self._failed("unreachable", f"it cannot be reached: {error}; see that it runs and listens") from error
        except OutcomeUnknownError as error:
            raise self._failed("lost", f"no answer to {path}: {error}") from error
        except ConfigError as error:
            raise self._failed("unreachable", f"{error}") from error
        values = answer.count(b",")
        if values > VALUES and values > VALUES + ANSWER_TO_VALUES * body.count(b","):
            raise self._failed("malformed", f"its answer to {path} has {values} values, which is more than it can mean")
        return answer

    async def _whole(self, response: aiohttp.ClientResponse, path: str, most: int) -> bytes:
        if response.status != 200:
            raise self._failed("status", await self._refusal(response, path))
        parts: list[bytes] = []
        left = most
        try:
            async for part in response.content.iter_any():
                left -= len(part)
                if left < 0:
                    raise self._failed("malformed", f"its answer to {path} has more than {most} bytes")
                parts.append(part)
        except (aiohttp.ClientError, OSError) as error:
            raise meaning(error, self.extender.name) from error
        return b"".join(parts)

    async def _refusal(self, response: aiohttp.ClientResponse, path: str) -> str:
        text = printable((await read_some(response, 4 * SAID)).decode("utf-8", "replace").strip(), SAID)
        if 300 <= response.status < 400:
            location = printable(response.headers.get("Location", "nowhere"), SAID)
            return (
                f"{path} is redirected ({response.status}) to {location}, which is not followed; correct its urlPrefix"
            )
        return f"{path} is answered with status {response.status}{': ' + text if text else ''}"

    # ---- connections

    def _connections(self) -> Connections:
        """The pool, or another if TLS files are others by now. ConfigError if it cannot be made."""
        server = _server(self.extender.url_prefix)
        stamp = stamp_of(self.extender) if server.startswith("https:") else ()
        if self._pool is None or stamp != self._stamp:
            tls: ssl.SSLContext | None = context_of(self.extender) if server.startswith("https:") else None
            cluster = Cluster(server, "", trust_of(self.extender), proxy=proxy_for(server, self._environ))
            self.retire()
            self._retired = [pool for pool in self._retired if not pool.closed]
            self._pool, self._stamp = Connections(cluster, tls, authority=AUTHORITY), stamp
        return self._pool

    def _says(self, text: str) -> ExtenderError:
        return self._failed("error", f"it says: {printable(text, SAID)}")

    def _failed(self, outcome: Outcome, why: str) -> ExtenderError:
        return ExtenderError(outcome, f"extender {printable(self.extender.name, SAID)}: {why}")


def _server(prefix: str) -> str:
    try:
        parts = urlsplit(prefix)
        good = parts.scheme in {"http", "https"} and _is_host(parts.hostname or "") and parts.port != 0
    except ValueError:
        good, parts = False, urlsplit("")
    good = good and all("!" <= character <= "~" for character in prefix)
    if not good or parts.username is not None or parts.query or parts.fragment:
        raise ConfigError("its urlPrefix is not an address like https://10.0.0.1:8888/scheduler; correct it")
    return prefix.rstrip("/")


def _is_host(name: str) -> bool:
    """Whether it can be the name of a host, or is an address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        labels = name.removesuffix(".").split(".")
        return all(map(_LABEL.fullmatch, labels)) and not labels[-1].isdigit()
    return "%" not in name
