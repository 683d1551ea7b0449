"""Exec plugins for tests: real scripts, whose time is what a file says."""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.unit.kube.timers import START, VirtualTimers

from ksp.kube.auth.exec_plugin import VERSIONS, ExecPlugin


def script(path: Path, source: str) -> Path:
    """An executable Python script."""
    path.write_text(f"#!{sys.executable} -SE\n{textwrap.dedent(source)}", encoding="utf-8")
    path.chmod(0o755)
    return path


def plugin(path: Path, *arguments: str, longest_run: float = 20.0) -> ExecPlugin:
    return ExecPlugin("the plugin", (str(path), *arguments), {}, VERSIONS[0], longest_run=longest_run)


@dataclass(frozen=True)
class TokenShop:
    """Issues tokens that are good for `life` seconds of virtual time. A token is the time of its expiry."""

    folder: Path
    timers: VirtualTimers
    life: float = 2.0

    def plugin(self) -> ExecPlugin:
        """A plugin that issues them. Each run leaves a line in `runs`; it fails while there is a file `broken`."""
        self.tell_time()
        source = f"""
            import datetime, json, pathlib, sys
            folder = pathlib.Path(sys.argv[1])
            with (folder / "runs").open("a") as runs:
                runs.write("run\\n")
            if (folder / "broken").exists():
                sys.exit("no way to the identity provider")
            expiry = float((folder / "now").read_text()) + {self.life}
            stamp = datetime.datetime.fromisoformat({START.isoformat()!r}) + datetime.timedelta(seconds=expiry)
            status = {{"token": f"expires-{{expiry}}", "expirationTimestamp": stamp.isoformat()}}
            print(json.dumps({{"apiVersion": {VERSIONS[0]!r}, "kind": "ExecCredential", "status": status}}))
        """
        return plugin(script(self.folder / "plugin", source), str(self.folder))

    @property
    def runs(self) -> int:
        return len((self.folder / "runs").read_text().splitlines())

    def break_(self) -> None:
        (self.folder / "broken").touch()

    def mend(self) -> None:
        (self.folder / "broken").unlink()

    def tell_time(self) -> None:
        """Writes the time where the plugin reads it."""
        (self.folder / "next").write_text(str(self.timers.now()))
        (self.folder / "next").rename(self.folder / "now")

    async def advance(self, seconds: float) -> None:
        await self.timers.advance(seconds)
        self.tell_time()

    def accepts(self, authorization: str | None, skew: float = 0.0) -> bool:
        """Whether a server whose clock is `skew` seconds fast takes this header."""
        if authorization is None or not authorization.startswith("Bearer expires-"):
            return False
        return self.timers.now() + skew < float(authorization.removeprefix("Bearer expires-"))


def credential(**status: str) -> str:
    """What a plugin prints."""
    return json.dumps({"apiVersion": VERSIONS[0], "kind": "ExecCredential", "status": status})
