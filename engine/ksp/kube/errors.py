"""What can go wrong between ksp and an API server, as four kinds that callers treat differently.

`ConfigError` ends the program with one line. `UnreachableError` means that nothing was processed. After
`OutcomeUnknownError` a change may or may not have happened: who sent it has to look. `ApiError` is an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class KubeError(Exception):
    """A failure between ksp and the API server; its text is one readable line."""


class ConfigError(KubeError):
    """The configuration, a certificate or a token cannot be used: one sentence that names the file and what to do."""


class ApiError(KubeError):
    """The server's answer is an error (status 400 and above) or a redirect (3xx), which is never followed.

    `reason` is the machine-readable word of the Status object (`NotFound`, `Conflict`, `Expired`, ...), or HTTP's
    phrase where there is none. `details` are the Status object's details. `retry_after` is in seconds.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after


class UnreachableError(KubeError):
    """Nothing was processed: no connection (refused, name not found, TLS handshake failed, too slow).

    `temporary` is False where trying again at once is of no use: the certificate is not trusted.
    """

    def __init__(self, message: str, *, temporary: bool = True) -> None:
        super().__init__(message)
        self.temporary = temporary


class OutcomeUnknownError(KubeError):
    """The request was sent, and there was no answer, or not the whole of it: timeout, reset, silence, a broken stream.

    `timed_out` says that the time allowed ran out; otherwise the connection was lost.
    """

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out
