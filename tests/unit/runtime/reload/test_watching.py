from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.events.objects import ObjectReference
from ksp.model.config_map import ConfigMap
from ksp.model.meta import ObjectMeta
from ksp.policy.texts import PolicyTexts
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.source import SourceError
from ksp.runtime.reload.sources import FileSource
from ksp.runtime.reload.watching import EVERY, RESTLESS, ConfigMapWatch, FileWatch, Found

A = "// a\n"


class Finds:
    """What a watch has found."""

    def __init__(self) -> None:
        self.all: list[Found] = []

    @property
    def texts(self) -> list[object]:
        return [dict(each.files) if isinstance(each, PolicyTexts) else str(each) for each in map(read, self.all)]


def read(found: Found) -> PolicyTexts | SourceError:
    try:
        return found.read()
    except SourceError as error:
        return error


def watched(folder: Path) -> tuple[Path, FileWatch, Finds]:
    path, finds = folder / "a.ksp", Finds()
    path.write_text(A)
    source = FileSource(str(path))
    source.read()
    return path, FileWatch(source, finds.all.append, VirtualTimers()), finds


async def test_what_was_read_at_the_start_is_no_change(tmp_path: Path) -> None:
    _, watch, finds = watched(tmp_path)
    for _ in range(3):
        await watch.look()
    assert finds.all == []


async def test_a_change_is_read_when_it_is_at_rest(tmp_path: Path) -> None:
    path, watch, finds = watched(tmp_path)
    for lines in range(2, 5):
        path.write_text(A * lines)
        await watch.look()
    assert finds.all == []
    await watch.look()
    await watch.look()
    assert finds.texts == [{"a.ksp": A * 4}]
    assert finds.all[0].asked is False


async def test_one_that_never_rests_is_read_all_the_same(tmp_path: Path) -> None:
    path, watch, finds = watched(tmp_path)
    for lines in range(2, 2 + 2 * RESTLESS):
        path.write_text(A * lines)
        await watch.look()
    assert finds.texts == [{"a.ksp": A * (1 + RESTLESS)}, {"a.ksp": A * (1 + 2 * RESTLESS)}]


async def test_a_fault_of_ksp_is_found_in_the_place_of_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, watch, finds = watched(tmp_path)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(FileSource, "_texts", broken)
    path.write_text(A * 2)
    for _ in range(2):
        await watch.look()
    assert finds.texts == [f"{path}: internal error: ZeroDivisionError: a bug"]
    assert "a fault of ksp" in caplog.text


async def test_a_file_that_is_gone_is_told_once_and_so_is_its_return(tmp_path: Path) -> None:
    path, watch, finds = watched(tmp_path)
    path.unlink()
    for _ in range(4):
        await watch.look()
    path.write_text(A)
    for _ in range(4):
        await watch.look()
    gone, back = finds.all
    assert isinstance(read(gone), SourceError)
    assert isinstance(read(back), PolicyTexts)


async def test_a_change_between_the_start_and_the_first_look_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "a.ksp"
    path.write_text(A)
    source, finds = FileSource(str(path)), Finds()
    source.read()
    path.write_text(A * 2)
    watch = FileWatch(source, finds.all.append, VirtualTimers())
    await watch.look()
    await watch.look()
    assert finds.texts == [{"a.ksp": A * 2}]


@asynccontextmanager
async def running(watch: FileWatch) -> AsyncIterator[None]:
    task = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(5):
            yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_looks_once_a_second_and_reads_at_once_if_asked(tmp_path: Path) -> None:
    path, timers, found = tmp_path / "a.ksp", VirtualTimers(), asyncio.Queue[Found]()
    path.write_text(A)
    source = FileSource(str(path))
    source.read()
    watch = FileWatch(source, found.put_nowait, timers)
    async with running(watch):
        watch.again()
        assert (await found.get()).asked
        path.write_text(A * 2)
        for _ in range(2):
            await timers.asleep()
            await timers.advance(EVERY)
        seen = await found.get()
        assert not seen.asked
        assert isinstance(read(seen), PolicyTexts)


# ---- a ConfigMap


def config_map(text: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="policy", namespace="ours", uid="u1"), data={"a.ksp": text})


def test_what_an_informer_tells_is_found_with_what_it_is_about() -> None:
    finds = Finds()
    watch = ConfigMapWatch(ConfigMapSource("policy", "ours"), finds.all.append)
    watch.on_add(config_map(A))
    watch.on_update(config_map(A), config_map(A * 2))
    watch.on_delete(config_map(A * 2), True)
    assert finds.texts[:2] == [{"a.ksp": A}, {"a.ksp": A * 2}]
    assert "there is no ConfigMap ours/policy" in str(finds.texts[2])
    about = ObjectReference(kind="ConfigMap", api_version="v1", namespace="ours", name="policy", uid="u1")
    assert finds.all[0].regarding == about


def test_a_config_map_that_was_never_there_is_told_of_once_that_is_known() -> None:
    finds = Finds()
    watch = ConfigMapWatch(ConfigMapSource("policy", "ours"), finds.all.append)
    watch.synced()
    assert "create it" in str(finds.texts[0])


def test_who_asks_is_told_what_is_known() -> None:
    finds = Finds()
    watch = ConfigMapWatch(ConfigMapSource("policy", "ours"), finds.all.append)
    watch.on_add(config_map(A))
    watch.synced()
    watch.again()
    assert [each.asked for each in finds.all] == [False, True]
