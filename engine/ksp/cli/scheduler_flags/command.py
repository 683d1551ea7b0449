"""The command line of `ksp run`: parsed and explained by the table of flags.

As kube-scheduler's: `_` and `-` are the same in names, `--flag` is enough for one that is true or false, `-v=2` is
`-v 2`, and an empty text for a flag that has no default is as if the flag was not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click
from click.core import ParameterSource

from ksp.cli.scheduler_flags.flag import Flag, Section
from ksp.cli.scheduler_flags.given import Given
from ksp.cli.scheduler_flags.table import FLAGS
from ksp.cli.scheduler_flags.values import Bool, Strings, Texts

_SHOWN_UNASKED = (False, 0, None, (), "")
"""Defaults that go without saying."""


class _Unsaid(click.Option):
    """An option without a default."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        return None if value == "" else super().type_cast_value(ctx, value)


class SchedulerCommand(click.Command):
    """A command with the flags of the table. Its function gets them as one `Given`."""

    def __init__(self, name: str, function: Callable[[Given], None], help: str) -> None:
        super().__init__(
            name, callback=lambda **values: function(_given(values)), help=help,
            params=[_option(flag) for flag in FLAGS],
            context_settings={"token_normalize_func": _with_dashes},
        )  # fmt: skip

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f"-v{arg[3:]}" if arg.startswith("-v=") else arg for arg in args])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in Section:
            with formatter.section(section.value):
                rows = [_row(flag) for flag in _of(section)]
                asked = self.get_help_option(ctx) if section is Section.OTHER else None
                own = asked.get_help_record(ctx) if asked is not None else None
                formatter.write_dl([*rows, own] if own is not None else rows)


def _with_dashes(name: str) -> str:
    return name.replace("_", "-")


def _option(flag: Flag) -> click.Option:
    names = [f"--{flag.name}", *([f"-{flag.short}"] if flag.short else []), flag.key]
    if isinstance(flag.type, Strings | Texts):
        return click.Option(names, multiple=True, type=click.STRING)
    if isinstance(flag.type, Bool):
        return click.Option(names, is_flag=False, flag_value="true", type=flag.type, default=flag.default)
    if flag.default is None:
        return _Unsaid(names, type=flag.type)
    return click.Option(names, type=flag.type, default=flag.default)


def _given(values: dict[str, Any]) -> Given:
    context = click.get_current_context()
    found = {flag.name: _value(flag, values[flag.key]) for flag in FLAGS}
    said = (
        flag.name
        for flag in FLAGS
        if context.get_parameter_source(flag.key) is ParameterSource.COMMANDLINE and found[flag.name] is not None
    )
    return Given(found, frozenset(said))


def _value(flag: Flag, value: Any) -> Any:
    if not isinstance(flag.type, Strings | Texts):
        return value
    if not value:
        return flag.default
    if isinstance(flag.type, Texts):
        return tuple(value)
    return tuple(part.strip() for text in value for part in text.split(",") if part.strip())


# ---- help


def _of(section: Section) -> Iterator[Flag]:
    return (flag for flag in FLAGS if flag.section is section)


def _row(flag: Flag) -> tuple[str, str]:
    short = f"-{flag.short}, " if flag.short else ""
    value = f" {metavar}" if (metavar := shown_value(flag)) else ""
    silent = flag.meaningless or (flag.default in _SHOWN_UNASKED and not flag.unsaid)
    default = "" if silent else f"  [{shown_default(flag)}]"
    deprecated = "  (deprecated)" if flag.deprecated else ""
    return f"{short}--{flag.name}{value}", f"{flag.help}{deprecated}{default}"


def shown_value(flag: Flag) -> str:
    """How the value is named to the user; "" for one that is true or false."""
    if isinstance(flag.type, Bool):
        return ""
    if isinstance(flag.type, click.Choice) and not flag.metavar:
        return "|".join(flag.type.choices)
    return flag.metavar


def shown_default(flag: Flag) -> str:
    """The default as one would write it; "" for none."""
    from ksp.policy.durations import shown_seconds

    match flag.default:
        case None:
            return flag.unsaid
        case bool(value):
            return "true" if value else "false"
        case float(value) if flag.metavar == "DURATION":
            return shown_seconds(value)
        case float(value):
            return f"{value:g}"
        case tuple(values):
            return ",".join(values)
        case value:
            return str(value)
