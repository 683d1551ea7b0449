"""A part of a kubeconfig, read with its place, so that every mistake in it is one sentence."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ksp.kube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Section:
    """A map of a kubeconfig. `where` names file and entry; relative paths start at `base`. Null and "" are absent."""

    content: Mapping[Any, Any]
    where: str
    base: Path

    def text(self, key: str) -> str | None:
        value = self.content.get(key)
        if value is None or value == "":
            return None
        if not isinstance(value, str) or "\0" in value:
            raise ConfigError(f"{self.where}: `{key}` has to be text; put it into quotes")
        return value

    def needed(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise ConfigError(f"{self.where}: `{key}` is missing")
        return value

    def flag(self, key: str) -> bool:
        value = self.content.get(key)
        if not isinstance(value, bool | None):
            raise ConfigError(f"{self.where}: `{key}` has to be true or false")
        return bool(value)

    def base64(self, key: str) -> bytes | None:
        """Data in base64, as bytes."""
        text = self.text(key)
        if text is None:
            return None
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{self.where}: `{key}` is not base64 ({error}); encode the file again") from error

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty where there is none."""
        value = self.content.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) and "\0" not in item for item in value):
            raise ConfigError(f"{self.where}: `{key}` has to be a list of texts; put numbers into quotes")
        return value

    def header(self, key: str) -> str | None:
        """Text that can be the value of a header."""
        value = self.text(key)
        return None if value is None else self._fit_for_header(key, value)

    def headers(self, key: str) -> list[str]:
        """A list of such texts."""
        return [self._fit_for_header(key, value) for value in self.texts(key)]

    def _fit_for_header(self, key: str, value: str) -> str:
        if any(character < " " or character == "\x7f" for character in value):
            raise ConfigError(f"{self.where}: `{key}` holds a line break or another control character")
        return value

    def section(self, key: str) -> Section | None:
        value = self.content.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError(f"{self.where}: `{key}` has to be a map")
        return Section(value, f"{self.where}: `{key}`", self.base)

    def keys(self) -> Iterable[str]:
        return [str(key) for key in self.content]
