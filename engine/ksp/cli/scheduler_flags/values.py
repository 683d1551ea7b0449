"""How the values of flags are written: as Go's pflag takes them."""

from __future__ import annotations

import ipaddress
import math
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    ValueType = click.ParamType[Any]
else:
    ValueType = click.ParamType  # older versions of click take no argument here

# What Go's strconv.ParseBool takes.
WORDS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class Bool(ValueType):
    """`--flag`, `--flag=false`."""

    name = "true|false"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        if value not in WORDS:
            self.fail(f"`{value}` is neither true nor false", param, ctx)
        return WORDS[value]


class Duration(ValueType):
    """`15s`, `1m30s`, in seconds. `least` is the smallest that is taken; a number without a unit is seconds if that is
    `plain`: kube-scheduler's own flags are not."""

    name = "duration"

    def __init__(self, least: float = 0.0, *, plain: bool = False) -> None:
        self._least = least
        self._plain = plain

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from ksp.policy.durations import DurationError

        if isinstance(value, float):
            return value
        try:
            seconds = self._seconds(value)
        except DurationError as error:
            self.fail(f"{error}: write 15s, 1m30s or 500ms", param, ctx)
        if seconds < self._least:
            self.fail(f"{value} is less than {self._least:g}s", param, ctx)
        return seconds

    def _seconds(self, text: str) -> float:
        from ksp.policy.durations import seconds_of

        if self._plain:
            try:
                seconds = float(text)
            except ValueError:
                pass
            else:
                if math.isfinite(seconds):
                    return seconds
        return seconds_of(text)


class Number(click.FloatRange):
    """A float, and neither an infinite one nor none."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a number that can be used", param, ctx)
        return found


class Name(ValueType):
    """A text that is not blank."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            self.fail("the name is empty", param, ctx)
        return str(value)


class Address(ValueType):
    """An IP address: `0.0.0.0`, `::1`."""

    name = "ip"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            ipaddress.ip_address(value)
        except ValueError:
            self.fail(f'failed to parse IP: "{value}"', param, ctx)
        return str(value)


class Strings(ValueType):
    """`a,b`, and again `--flag=c`: a list of all, in place of the default."""

    name = "list"


class Texts(ValueType):
    """Given several times: a list of all, each as it is written."""

    name = "text"
