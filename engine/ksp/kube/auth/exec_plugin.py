"""Credentials from an exec plugin: a command that prints an ExecCredential.

Source: client.authentication.k8s.io/v1, "client-go credential plugins" in Kubernetes' documentation.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ksp.kube.auth.aio_config import command_line, seconds_since_1970
from ksp.kube.auth.credentials import Issued, checked_token
from ksp.kube.auth.section import Section
from ksp.kube.auth.tls import KeyPair
from ksp.kube.errors import ConfigError
from ksp.kube.printable import printable

LONGEST_RUN = 30.0
"""Seconds that a plugin may take."""
LONGEST_OUTPUT = 1024 * 1024
"""Bytes that a plugin may print."""
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXTENSION = "client.authentication.k8s.io/exec"
_SECRETS = re.compile(
    r"""-----BEGIN [^-]*PRIVATE\ KEY-----.*
    | eyJ[\w-]+\.[\w.-]*                                                       # a JSON web token
    | (?P<name>\bAuthorization:\s* | [\w-]*(token|password|secret|access_key)[\w-]*["']?\s*[:=]\s*)
      ((Bearer|Basic)\s+)? ("[^"]*" | '[^']*' | [^\s"',;]+)
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""What a complaint may hold and a log must not: keys, tokens, and what is said to be a password or the like."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that issues credentials. `name` is what messages call it, `hint` how to install it."""

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    version: str
    hint: str | None = None
    longest_run: float = LONGEST_RUN

    async def issue(self) -> Issued:
        """Runs the command and reads what it prints. ConfigError where it fails, prints something else, or hangs."""
        process = await self._started()
        try:
            async with asyncio.timeout(self.longest_run):
                output, complaint = await asyncio.gather(_read(process, 1), _read(process, 2))
                code = await process.wait()
        except TimeoutError as error:
            ended = process.returncode is not None
            await _end(process)
            if ended:
                raise ConfigError(f"{self.name} ended, but left a process behind that holds its output open") from error
            raise ConfigError(f"{self.name} did not end within {self.longest_run:g} seconds") from error
        except BaseException:
            await _end(process)
            raise
        if output is None or complaint is None:
            raise ConfigError(f"{self.name} printed more than {LONGEST_OUTPUT} bytes")
        if code != 0:
            raise ConfigError(f"{self.name} failed with exit code {code}: {_complaint(complaint)}")
        return self._issued(output)

    async def _started(self) -> asyncio.subprocess.Process:
        """The running command. Who is cancelled meanwhile waits until it can be ended: asyncio, cancelled in the middle
        of starting a process, leaves the children of that process behind, and waits for them.
        """
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *self.arguments,
                env=self.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # so that its own children end with it
            )
        )
        try:
            return await asyncio.shield(starting)
        except (OSError, ValueError) as error:
            raise ConfigError(self._not_started(error)) from error
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            if starting.exception() is None:
                await _end(starting.result())
            raise

    def _not_started(self, error: Exception) -> str:
        hint = f"; {' '.join(self.hint.split())}" if self.hint else "; install it or correct the command's path"
        return f"{self.name} cannot be started: {getattr(error, 'strerror', None) or error}{hint}"

    def _issued(self, output: bytes) -> Issued:
        status = self._status(output)
        token, certificate, key = (
            self._text(status, field) for field in ("token", "clientCertificateData", "clientKeyData")
        )
        if (certificate is None) != (key is None):
            raise ConfigError(f"{self.name} gave only one of clientCertificateData and clientKeyData")
        if token is None and certificate is None:
            raise ConfigError(f"{self.name} gave neither a token nor a client certificate")
        what = f"the client certificate of {self.name}"
        pair = None if certificate is None or key is None else KeyPair(certificate.encode(), key.encode(), what)
        token = None if token is None else checked_token(token.strip(), self.name)
        return Issued(token, pair, self._expires(status))

    def _status(self, output: bytes) -> Mapping[str, Any]:
        try:
            found = json.loads(output)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{self.name} printed no ExecCredential, but {len(output)} bytes that are no JSON"
            ) from error
        if not isinstance(found, dict) or found.get("kind") != "ExecCredential":
            raise ConfigError(f"{self.name} printed JSON that is no ExecCredential")
        if found.get("apiVersion") != self.version:
            raise ConfigError(
                f"{self.name} answers in version {printable(str(found.get('apiVersion')), 100)}, "
                f"the kubeconfig asks for {self.version}; let both be the same"
            )
        status = found.get("status")
        return status if isinstance(status, dict) else {}

    def _text(self, status: Mapping[str, Any], key: str) -> str | None:
        value = status.get(key)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{self.name} gave a {key} that is not text")
        return value or None

    def _expires(self, status: Mapping[str, Any]) -> float | None:
        text = self._text(status, "expirationTimestamp")
        if text is None:
            return None
        try:
            return seconds_since_1970(text)
        except (ValueError, OverflowError) as error:
            raise ConfigError(f"{self.name} gave an expirationTimestamp that is no time: {error}") from error


def exec_plugin(entry: Section, cluster: Section) -> ExecPlugin:
    """The plugin of a user's `exec`; ConfigError where the entry is wrong."""
    command, version = entry.needed("command"), entry.needed("apiVersion")
    if version not in VERSIONS:
        raise ConfigError(f"{entry.where}: apiVersion {version} is not supported; {' and '.join(VERSIONS)} are")
    if entry.text("interactiveMode") == "Always":
        raise ConfigError(f"{entry.where}: interactiveMode Always needs a person at a terminal; ksp has none")
    if os.sep in command:
        command = str(entry.base / command)  # client-go: relative to the kubeconfig
    checked = {
        "command": command,
        "apiVersion": version,
        "args": entry.texts("args"),
        "env": _variables(entry),
    }
    arguments, environment = command_line(checked)
    spec: dict[str, Any] = {"interactive": False}
    if entry.flag("provideClusterInfo"):
        spec["cluster"] = _cluster_info(cluster)
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    return ExecPlugin(
        f"{entry.where}: the plugin {Path(command).name}",
        arguments,
        {**environment, "KUBERNETES_EXEC_INFO": json.dumps(info)},
        version,
        entry.text("installHint"),
    )


def _variables(entry: Section) -> list[dict[str, str]]:
    found = entry.content.get("env") or []
    if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
        raise ConfigError(f"{entry.where}: `env` has to be a list of name and value")
    variables = [Section(item, f"{entry.where}: `env`", entry.base) for item in found]
    return [{"name": variable.needed("name"), "value": variable.text("value") or ""} for variable in variables]


def _cluster_info(cluster: Section) -> dict[str, Any]:
    """What `provideClusterInfo` asks for: the cluster, with its authority as data, and the plugin's own settings."""
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    info = {name: cluster.content[name] for name in names if cluster.content.get(name)}
    extensions = cluster.content.get("extensions")
    for extension in extensions if isinstance(extensions, list) else ():
        if isinstance(extension, Mapping) and extension.get("name") == _EXTENSION:
            info["config"] = extension.get("extension")
    return info


async def _read(process: asyncio.subprocess.Process, number: int) -> bytes | None:
    """All of standard output (1) or error (2); None if it is too much, and then the plugin is killed."""
    stream = process.stdout if number == 1 else process.stderr
    assert stream is not None
    parts: list[bytes] = []
    length = 0
    while part := await stream.read(65536):
        length += len(part)
        if length <= LONGEST_OUTPUT:
            parts.append(part)
        else:
            _kill(process)  # and the rest is read and forgotten
    return b"".join(parts) if length <= LONGEST_OUTPUT else None


def _kill(process: asyncio.subprocess.Process) -> None:
    """Ends the command with its children, one of which may hold the output open after the command has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends it, and closes its output: a process counts as ended when its output has been read, and a process of another
    session, which it left behind, may hold that open for ever.
    """
    _kill(process)
    for number in (1, 2):
        # asyncio has no other way. (To close the whole transport may reap the process behind its watcher's back.)
        process._transport.get_pipe_transport(number).close()  # type: ignore[attr-defined] # noqa: SLF001
    await process.wait()


def _complaint(output: bytes) -> str:
    """What a plugin wrote to its standard error, short, on one line, and without what looks like a secret.

    What it writes to its standard output is never repeated: that is where credentials stand.
    """
    text = " ".join(_SECRETS.sub(_left_out, output[:4096].decode("utf-8", "replace")).split())
    return printable(text, 300) or "it says nothing on its standard error"


def _left_out(found: re.Match[str]) -> str:
    return f"{found['name'] or ''}..."
