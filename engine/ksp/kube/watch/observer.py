"""What a reflector tells of itself while it works: counts for metrics, sentences for the log."""

from __future__ import annotations

from typing import Literal, Protocol

Ending = Literal["ended", "silent", "lost", "refused"]
"""How a watch came to its end: by the server's timeout, by silence, by a broken connection, or by an error's answer."""


class ReflectorObserver(Protocol):
    """`resource` is always the plural: `pods`. Each method returns at once and raises nothing."""

    def listed(self, resource: str, items: int, seconds: float) -> None:
        """A whole list has been read, by pages or as a stream."""
        ...

    def watching(self, resource: str) -> None:
        """A watch has been opened."""
        ...

    def watch_ended(self, resource: str, ending: Ending) -> None: ...

    def relisting(self, resource: str, reason: str) -> None:
        """What is known cannot be brought up to date by a watch: `too old`, `went back`, ..."""
        ...

    def undecodable(self, resource: str, key: str, message: str) -> None:
        """An object could not be read. Its last good version, if there is one, stays. `key` may be empty."""
        ...

    def repeated(self, resource: str) -> None:
        """The server sent an event again, or one older than what is known; it was dropped."""
        ...

    def position(self, resource: str, resource_version: str) -> None:
        """All changes up to this version are known."""
        ...

    def failed(self, resource: str, why: str) -> None:
        """An attempt has failed and is repeated after a while; `why` is a sentence for the log."""
        ...


class Unobserved:
    """Tells nobody."""

    def listed(self, resource: str, items: int, seconds: float) -> None: ...

    def watching(self, resource: str) -> None: ...

    def watch_ended(self, resource: str, ending: Ending) -> None: ...

    def relisting(self, resource: str, reason: str) -> None: ...

    def undecodable(self, resource: str, key: str, message: str) -> None: ...

    def repeated(self, resource: str) -> None: ...

    def position(self, resource: str, resource_version: str) -> None: ...

    def failed(self, resource: str, why: str) -> None: ...
