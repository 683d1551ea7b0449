"""Policies are tried in a process of their own, which has limits. Real processes: each takes half a second."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.unit.kube.timers import VirtualTimers

from ksp.cli.vet import OOM_SCORE
from ksp.kube.timers import SystemTimers
from ksp.policy.assemble import Settings
from ksp.policy.configuration import read_configuration
from ksp.policy.texts import PolicyTexts
from ksp.runtime.reload.child import COMMAND, Child
from ksp.runtime.reload.verdict import ChildLimits, Trial, Verdict, bounded, decoded_trial, encoded_trial

RULES = """
/// Named.
predicate Named implements Named {
  deny "no name" when node.name == ""
}

provider P {
  predicates { Named }
  priorities { }
}

profile "default-scheduler" uses P { }
"""
TEST = 'import "a.ksp"\ntest "t" {\n  node n { }\n  pod p { }\n  expect Named admits p on n\n}\n'
TRIED = "the process that tried the policy (with 2048 MiB of address space at most)"


def large_rules(number: int) -> str:
    """A policy that takes a second for each rule."""
    condition = " || ".join(f'node.name.startsWith("{i}") && pod.name.endsWith("{i}")' for i in range(300))
    rules = [f'predicate R{i} implements R{i} {{\n  deny "no" when {condition}\n}}\n' for i in range(number)]
    names = ", ".join(f"R{i}" for i in range(number))
    return f'{"".join(rules)}provider P {{ predicates {{ {names} }} priorities {{ }} }}\nprofile "x" uses P {{ }}\n'


def trial(files: dict[str, str], limits: ChildLimits | None = None, **settings: str) -> Trial:
    texts = PolicyTexts("x", files, tuple(each for each in files if not each.endswith(".test.ksp")), shown="/etc")
    return Trial(texts, Settings(**settings), limits or ChildLimits())  # type: ignore[arg-type]


async def vetted(files: dict[str, str], limits: ChildLimits | None = None) -> Verdict:
    given = trial(files, limits)
    async with asyncio.timeout(30):
        return await Child(SystemTimers(), os.environ, limits=given.limits).vet(given)


async def ended(code: str) -> Verdict:
    """The verdict where another program stands in the child's place, which does what a broken one might."""
    async with asyncio.timeout(30):
        return await Child(SystemTimers(), os.environ, command=(sys.executable, "-c", code)).vet(
            trial({"a.ksp": RULES})
        )


async def test_a_policy_that_may_run() -> None:
    verdict = await vetted({"a.ksp": RULES, "a.test.ksp": TEST})
    assert (verdict.ok, verdict.message, verdict.passed) == (True, "", 1)
    assert len(verdict.sha256) == 64
    assert verdict.seconds > 0
    assert verdict.memory > 2**20


async def test_what_takes_too_much_memory_is_ended_with_a_sentence() -> None:
    verdict = await vetted({"a.ksp": RULES}, ChildLimits(memory=48 * 2**20))
    assert (verdict.ok, verdict.stage) == (False, "child")
    assert verdict.message.startswith("the process that tried the policy (with 48 MiB of address space at most) ")


@pytest.mark.skipif(not OOM_SCORE.exists(), reason="there is no /proc")
async def test_where_memory_is_short_the_child_is_ended_before_the_scheduler() -> None:
    code = (
        "import json\nfrom ksp.cli import vet\n"
        "answer = lambda: {'ok': False, 'message': vet.OOM_SCORE.read_text().strip()}\n"
        "vet._verdict = lambda began: json.dumps(answer()).encode()\n"
        "vet.vet(['--cpu=9', '--memory=2000000000', '--seconds=9', '--files=64'])"
    )
    assert (await ended(code)).message == "1000"


async def test_what_takes_too_much_processor_time_is_ended() -> None:
    verdict = await vetted({"a.ksp": large_rules(6)}, ChildLimits(cpu=1))
    assert verdict.message == "trying the policy took more than 1 s of processor time"


async def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    said, timers = told(tmp_path), VirtualTimers()
    code = f"import os, time\nchild = os.fork()\nif child: open({str(said)!r}, 'w').write(str(child))\ntime.sleep(60)"
    child = Child(timers, os.environ, limits=ChildLimits(seconds=7), command=(sys.executable, "-c", code))
    async with asyncio.timeout(30):
        vetting = asyncio.create_task(child.vet(trial({"a.ksp": RULES})))
        pid = int(await asyncio.to_thread(said.read_text))
        await timers.advance(7)
        verdict = await vetting
    assert verdict.message == "trying the policy took longer than 7 s"
    await gone(pid)


def told(folder: Path) -> Path:
    """Where a child tells something; who reads it waits for that."""
    os.mkfifo(folder / "told")
    return folder / "told"


async def gone(pid: int) -> None:
    """Returns when the process has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, ended.set)
    try:
        async with asyncio.timeout(30):
            await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('a bug')", f"{TRIED} ended with 1: ValueError: a bug"),
        ("import os; os.abort()", f"{TRIED} was ended by SIGABRT"),
        ("import os; os.kill(os.getpid(), 14)", "trying the policy took longer than 60 s"),
        ("print('hello')", "the process that tried the policy gave no verdict"),
    ],
)
async def test_a_child_that_breaks_is_told_of_in_a_sentence(code: str, said: str) -> None:
    verdict = await ended(code)
    assert (verdict.ok, verdict.stage, verdict.message) == (False, "child", said)


async def test_a_program_that_cannot_be_started_is_told_of() -> None:
    child = Child(SystemTimers(), {}, command=("/absent/python",))
    verdict = await child.vet(trial({"a.ksp": RULES}))
    assert "a process cannot be started: No such file or directory" in verdict.message


async def test_the_child_has_no_more_of_the_environment_than_it_needs() -> None:
    code = "import os, json; print(json.dumps({'ok': False, 'message': ' '.join(sorted(os.environ))}))"
    child = Child(SystemTimers(), {"PATH": "/bin", "AWS_SECRET": "x"}, command=(sys.executable, "-c", code))
    verdict = await child.vet(trial({"a.ksp": RULES}))
    assert "PATH" in verdict.message
    assert "AWS_SECRET" not in verdict.message


async def test_the_child_finds_what_this_process_imports_wherever_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["engine", ""])
    code = "import json, sys; print(json.dumps({'ok': False, 'message': ' '.join(sys.path[1:3])}))"
    verdict = await ended(code)
    assert verdict.message == f"{Path.cwd() / 'engine'} {Path.cwd()}"


async def test_who_says_nothing_more_is_ended_when_the_time_is_over() -> None:
    code = "import os, time; os.closerange(0, 3); time.sleep(60)"
    assert (await hurried(code)).message == "trying the policy took longer than 0.2 s"


async def test_so_is_who_leaves_somebody_behind_that_holds_the_pipes(tmp_path: Path) -> None:
    said, timers = told(tmp_path), VirtualTimers()
    code = f"import os, time\nif not os.fork():\n  open({str(said)!r}, 'w').write(str(os.getpid()))\n  time.sleep(60)"
    child = Child(timers, os.environ, limits=ChildLimits(seconds=7), command=(sys.executable, "-c", code))
    async with asyncio.timeout(30):
        vetting = asyncio.create_task(child.vet(trial({"a.ksp": RULES})))
        pid = int(await asyncio.to_thread(said.read_text))
        await timers.advance(7)
        assert (await vetting).message == "trying the policy took longer than 7 s"
    await gone(pid)


async def test_who_says_far_too_much_is_killed() -> None:
    assert "or for what it said" in (await ended("while True: print('x' * 65536)")).message


async def hurried(code: str) -> Verdict:
    child = Child(SystemTimers(), os.environ, limits=ChildLimits(seconds=0.2), command=(sys.executable, "-c", code))
    async with asyncio.timeout(30):
        return await child.vet(trial({"a.ksp": RULES}))


async def test_a_vetting_that_is_given_up_leaves_no_process(tmp_path: Path) -> None:
    said = told(tmp_path)
    code = f"import os, time\nopen({str(said)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    child = Child(SystemTimers(), os.environ, command=(sys.executable, "-c", code))
    async with asyncio.timeout(30):
        vetting = asyncio.create_task(child.vet(trial({"a.ksp": RULES})))
        pid = int(await asyncio.to_thread(said.read_text))
        vetting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await vetting
    await gone(pid)


def test_a_trial_arrives_as_it_was_sent() -> None:
    sent = trial({"a.ksp": RULES, "b.ksp": "\udcff"}, scheduler_name="x")
    texts, settings = decoded_trial(encoded_trial(sent))
    assert texts == sent.texts
    assert texts.sha256 == sent.texts.sha256
    assert settings.scheduler_name == "x"


def test_a_long_message_is_cut_at_a_line() -> None:
    assert bounded("ab\ncd\nef", 7) == "ab\ncd\n... (more is not shown)"
    assert bounded("ab\ncd", 7) == "ab\ncd"


def test_the_command_is_this_python() -> None:
    assert COMMAND[:3] == (sys.executable, "-m", "ksp")


def test_settings_of_a_configuration_arrive_as_they_were_sent() -> None:
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: a\n  plugins:\n    score:\n      disabled:\n      - name: '*'\n"
        "extenders:\n- urlPrefix: http://127.0.0.1:1\n  filterVerb: filter\n"
    )
    settings = Settings(configuration=read_configuration(text, "config.yaml"))
    sent = Trial(PolicyTexts("x", {}, ("ksp:all.ksp",)), settings, ChildLimits())
    assert decoded_trial(encoded_trial(sent))[1] == settings
