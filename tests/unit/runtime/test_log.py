from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ksp.runtime.log import DECISIONS, JsonFormatter, LogSettings, Seldom, entry, set_up


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root, ksp = logging.getLogger(), logging.getLogger("ksp")
    before = root.handlers[:], root.level, ksp.level
    yield
    for handler in root.handlers:
        if handler not in before[0]:
            handler.close()
    root.handlers[:] = before[0]
    root.setLevel(before[1])  # which also empties the caches of what is enabled
    ksp.setLevel(before[2])


def log_of(verbosity: int) -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    set_up(LogSettings(verbosity), stream)
    return logging.getLogger("ksp.anything"), stream


def test_an_entry_is_a_line_of_message_and_pairs() -> None:
    assert entry("synced", nodes=3, seconds=1.25) == "synced nodes=3 seconds=1.25"
    assert entry("no", why='the "x" is not') == 'no why="the \\"x\\" is not"'
    assert entry("no", why="") == 'no why=""'


def test_a_pair_may_be_called_message() -> None:
    assert entry("no node", message="none fits") == 'no node message="none fits"'


def test_lines_are_as_klog_writes_them() -> None:
    log, stream = log_of(0)
    log.info("begin")
    log.warning("hm")
    log.error("oh")
    lines = stream.getvalue().splitlines()
    assert [line[0] for line in lines] == ["I", "W", "E"]
    assert all(re.fullmatch(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} \w+", line) for line in lines)


def test_what_others_wrote_cannot_begin_a_line_or_paint_the_terminal() -> None:
    log, stream = log_of(0)
    log.info(entry("no", why="one\nE1121 two\x1b[31m"))
    assert stream.getvalue().count("\n") == 1
    assert '"one\\nE1121 two\\x1b[31m"' in stream.getvalue()


@pytest.mark.parametrize(
    ("char", "shown"), [("\x9b", "\\x9b"), ("\u2028", "\\u2028"), ("\u202e", "\\u202e"), ("\ud800", "\\ud800")]
)
def test_nor_can_what_is_not_ascii(char: str, shown: str) -> None:
    log, stream = log_of(0)
    log.info(entry("no", why=f"é{char}31m"))
    assert f"é{shown}31m" in stream.getvalue()


def test_a_traceback_is_indented() -> None:
    log, stream = log_of(0)
    log.error("oh", exc_info=ValueError("what\nelse"))
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("oh")
    assert rest[-2:] == ["    ValueError: what", "    else"]
    assert all(line.startswith("    ") for line in rest)


@pytest.mark.parametrize(("verbosity", "shown"), [(0, ""), (1, ""), (2, "decision"), (10, "decision detail")])
def test_more_is_shown_the_greater_the_verbosity(verbosity: int, shown: str) -> None:
    log, stream = log_of(verbosity)
    log.log(DECISIONS, "decision")
    log.debug("detail")
    assert " ".join(line.split()[-1] for line in stream.getvalue().splitlines()) == shown


def test_of_other_libraries_only_warnings_are_shown() -> None:
    _, stream = log_of(0)
    logging.getLogger("aiohttp.access").info("a request")
    logging.getLogger("asyncio").warning("slow")
    assert [line.split()[-1] for line in stream.getvalue().splitlines()] == ["slow"]


def test_something_that_lasts_is_said_seldom() -> None:
    log, stream = log_of(0)
    now = [0.0]
    seldom = Seldom(log, lambda: now[0])
    for second in [*range(200), 1000, 1001, 1005]:
        now[0] = float(second)
        seldom.say("pods", "waiting", second=second)
    seldom.say("nodes", "waiting", second="any")
    said = [line.split("=")[-1] for line in stream.getvalue().splitlines()]
    assert said == ["0", "5", "15", "35", "75", "135", "195", "1000", "1005", "any"]


# ---- JSON, and files


def test_json_has_one_object_a_line() -> None:
    stream = io.StringIO()
    set_up(LogSettings(2, "json"), stream)
    log = logging.getLogger("ksp.anything")
    log.info(entry("synced", nodes=3, seconds=1.25, why='a "b"\n', msg="taken"))
    log.warning("a bare %s", "text")
    log.log(DECISIONS, entry("bound", pod="a/b"))
    log.error("a fault", exc_info=ValueError("bug"))
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert all(isinstance(each.pop("ts"), float) for each in said)
    trace = said[3].pop("trace")
    assert trace == "ValueError: bug"
    assert said == [
        {"level": "info", "v": 0, "msg": "synced", "nodes": 3, "seconds": 1.25, "why": 'a "b"\n', "msg_": "taken"},
        {"level": "warning", "v": 0, "msg": "a bare text"},
        {"level": "info", "v": 2, "msg": "bound", "pod": "a/b"},
        {"level": "error", "v": 0, "msg": "a fault"},
    ]


def test_a_file_gets_all_and_stderr_what_is_grave(tmp_path: Path) -> None:
    stream, file = io.StringIO(), tmp_path / "log"
    set_up(LogSettings(to_stderr=False, file=file), stream)
    log = logging.getLogger("ksp.anything")
    log.info("all is well")
    log.error("it is not")
    assert [line.split(" ", 2)[2] for line in file.read_text().splitlines()] == ["all is well", "it is not"]
    assert [line.split(" ", 2)[2] for line in stream.getvalue().splitlines()] == ["it is not"]


def test_a_file_that_is_full_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "log"
    set_up(LogSettings(to_stderr=False, file=file, max_bytes=100), io.StringIO())
    for number in range(5):
        logging.getLogger("ksp.anything").info("entry %d of some length", number)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "log.1"]
    assert file.stat().st_size <= 100
    assert "entry 4" in file.read_text()


def test_without_a_file_all_goes_to_stderr() -> None:
    stream = io.StringIO()
    set_up(LogSettings(to_stderr=False), stream)
    logging.getLogger("ksp.anything").info("all is well")
    assert "all is well" in stream.getvalue()


def test_json_stays_json_whatever_others_wrote() -> None:
    about = {"pod": "a\u202eb\ud800", "name": "Größe", "seconds": float("inf"), "nodes": 3, "ready": True}
    record = logging.LogRecord("ksp", logging.INFO, "", 0, entry("odd", **about), None, None)
    line = JsonFormatter().format(record)
    assert line.isprintable()
    line.encode()
    told = json.loads(line, parse_constant=pytest.fail)
    assert {key: told[key] for key in about} == {**about, "seconds": "inf"}
    plain = logging.LogRecord("ksp", logging.INFO, "", 0, entry("said", name="Größe"), None, None)
    assert "Größe" in JsonFormatter().format(plain)
