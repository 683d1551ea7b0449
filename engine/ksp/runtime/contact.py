"""The first words with the API server: is it there, which version is it, does it know us?

A server that cannot be reached is waited for, however long. What waiting cannot mend ends the program: a certificate
that is not trusted, credentials that are refused, a server of another kind.
"""

from __future__ import annotations

import logging
import re
from typing import Final

import msgspec

from ksp.kube.errors import ApiError, ConfigError, KubeError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.backoff import Backoff
from ksp.kube.http.client import Client
from ksp.kube.timers import Timers
from ksp.runtime.log import Seldom

_log = logging.getLogger(__name__)

TIMEOUT: Final = 10.0
FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 3.0
ANONYMOUS: Final = "system:anonymous"
UNKNOWN: Final = "unknown"
_NUMBERS: Final = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})")


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = UNKNOWN


async def first_contact(client: Client, timers: Timers) -> str:
    """The server's version. Raises ConfigError where waiting is of no use."""
    backoff = Backoff(timers, initial=FIRST_WAIT, maximum=LONGEST_WAIT)
    seldom = Seldom(_log, timers.now)
    while True:
        try:
            version = await _version(client)
            await client.request("GET", "/api", timeout=TIMEOUT, retry=False)
        except KubeError as error:
            _give_up_if_hopeless(client, error)
            server = client.cluster.server
            why = str(error).removeprefix(f"{server}: ")
            if isinstance(error, OutcomeUnknownError) and not client.cluster.encrypted:
                why += "; if the server speaks TLS, its address begins with https://"
            seldom.say("", "waiting for the API server", server=server, error=why)
        else:
            return version
        await timers.sleep(backoff.next())


def is_since(version: str, first: tuple[int, int]) -> bool:
    """Whether a server's version is that one or a later one. Of one that does not tell it, yes: few are very old."""
    found = _NUMBERS.match(version)
    return found is None or (int(found[1]), int(found[2])) >= first


async def _version(client: Client) -> str:
    """It may be refused to those who may do all else."""
    try:
        answer = await client.request("GET", "/version", timeout=TIMEOUT, retry=False)
        return msgspec.json.decode(answer.body, type=_Version).git_version
    except ApiError as error:
        if error.status == 403:
            return UNKNOWN
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UNKNOWN


def _give_up_if_hopeless(client: Client, error: KubeError) -> None:
    cluster = client.cluster
    match error:
        case ApiError(status=404):
            raise ConfigError(
                f"{cluster.server} is no Kubernetes API server: it answers {error.status} when asked for its version; "
                f"check the address in {cluster.origin}"
            ) from error
        case UnreachableError(temporary=False):
            raise ConfigError(str(error)) from error
        case ApiError(status=401):
            raise ConfigError(
                f"{cluster.server} does not accept the credentials: check the token, the client certificate or the "
                f"exec plugin in {cluster.origin} (the server says: {error.message})"
            ) from error
        case ApiError(status=403) if ANONYMOUS in error.message:
            raise ConfigError(
                f"{cluster.server} takes ksp for {ANONYMOUS}: there are no credentials in {cluster.origin}"
            ) from error
