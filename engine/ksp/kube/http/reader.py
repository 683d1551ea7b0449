"""What discovery and reflectors need of a client: plain reads, and streams of lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ksp.kube.errors import KubeError


class Answer(Protocol):
    """The answer to a request that succeeded."""

    @property
    def body(self) -> bytes: ...


class Reader(Protocol):
    """`ksp.kube.http.client.Client`, as far as it is read from. Both methods raise KubeError."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float = ...,  # noqa: ASYNC109 -- the client's own parameter
        retry: bool = ...,
    ) -> Answer: ...

    def stream(
        self, path: str, *, query: Mapping[str, str], inactivity: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Lines without their newline. The end of iteration is the end that the server meant."""
        ...


class MalformedError(KubeError):
    """The server answered with success, and what it sent is not what the API says."""
