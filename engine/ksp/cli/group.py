"""A group of commands whose modules are imported when a command is called, and not before: `ksp --help` knows them from
a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module

import click


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: `module:attribute` of its click command, and its line in the help of the group; "" for one that is not
    for people."""

    place: str
    help: str


class LazyGroup(click.Group):
    """Commands by name, in the order of their table."""

    def __init__(self, table: Mapping[str, Entry], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, entry in self.table.items() if entry.help]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.table and not name.startswith("-"):
            near = get_close_matches(name, self.list_commands(ctx), n=1)
            meant = f" Did you mean `{near[0]}`?" if near else ""
            raise click.UsageError(f"There is no command `{name}`.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.table.items() if entry.help])
