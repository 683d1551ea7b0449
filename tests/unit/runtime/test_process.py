from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Iterator

import pytest
from tests.unit.runtime.embedded import policy

from ksp.kube.errors import ConfigError
from ksp.kube.leader_election.elector import LeadershipLostError
from ksp.runtime import process
from ksp.runtime.app import App
from ksp.runtime.options import Options


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """Running sets the garbage collector for the process."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_a_fault_is_logged_with_its_place_and_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(self: App, stop: asyncio.Event) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(App, "run", broken)
    with pytest.raises(ZeroDivisionError):
        process.run_process(Options(policy()))
    (record,) = caplog.records
    assert record.getMessage() == "a fault of ksp ends it"
    assert record.exc_info is not None


def test_a_configuration_that_cannot_be_used_is_left_to_the_caller(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(self: App, stop: asyncio.Event) -> None:
        raise ConfigError("a wrong token")

    monkeypatch.setattr(App, "run", refuse)
    with pytest.raises(ConfigError, match="a wrong token"):
        process.run_process(Options(policy()))
    assert caplog.records == []


def test_who_has_lost_the_lease_ends_at_once_with_1(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class EndedError(BaseException):
        pass

    def end(code: int) -> None:
        raise EndedError(code)

    async def lose(self: App, stop: asyncio.Event) -> None:
        raise LeadershipLostError("leaderelection lost: the lease is held by somebody")

    monkeypatch.setattr(App, "run", lose)
    monkeypatch.setattr("os._exit", end)
    with pytest.raises(EndedError) as error:
        process.run_process(Options(policy()))
    assert error.value.args == (1,)
    assert caplog.messages == ["leaderelection lost: the lease is held by somebody"]


def test_the_same_signal_twice_at_once_is_one_and_any_other_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(process, "_end", ended.append)
    stop, now = asyncio.Event(), [100.0]
    stopping = process.Stopping(stop, lambda: now[0])
    stopping.received(signal.SIGTERM)
    assert stop.is_set()
    now[0] += process.ECHO / 2
    stopping.received(signal.SIGTERM)
    assert ended == []
    stopping.received(signal.SIGINT)
    assert ended == [128 + signal.SIGINT]
    now[0] += process.ECHO
    stopping.received(signal.SIGTERM)
    assert ended == [128 + signal.SIGINT, 128 + signal.SIGTERM]
