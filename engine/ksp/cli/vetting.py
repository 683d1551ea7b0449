"""What `ksp vet` does with a policy: all that the scheduler will do with it, and its tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from ksp.check.together import Checking
from ksp.core.changes import SetNode, SetPod
from ksp.core.scheduler import Scheduler
from ksp.model.decode import convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.assemble import Settings, assemble
from ksp.policy.errors import PolicyError
from ksp.policy.profile import Profile
from ksp.policy.texts import PolicyTexts
from ksp.policy.unread import UnreadFields
from ksp.runtime.reload.verdict import Verdict, bounded
from ksp.sim.dice import FirstFace
from ksp.sim.policy_tests import Result, Runner
from ksp.sim.scenes import FixtureTexts, Scene, scene_of
from ksp.source.diagnostic import Diagnostic
from ksp.source.render import render_text

NODES: Final = 8
"""Of the cluster that each profile decides in: so many that rules are asked in columns, too."""
SHOWN: Final = 10
"""Expectations that are not met, and that the verdict tells of."""


def vetted(texts: PolicyTexts, settings: Settings) -> Verdict:
    """What is to be said of the policy."""
    try:
        policy = assemble(texts, settings)
    except PolicyError as error:
        return Verdict(ok=False, stage="check", message=bounded(error.rendered()))
    results, mistakes = tested(texts)
    if mistakes:
        return Verdict(ok=False, stage="test", message=bounded(render_text(mistakes, color=False)))
    failed = [result for result in results if result.happened]
    passed = len(results) - len(failed)
    if failed:
        message = bounded("\n".join(unmet(failed)))
        return Verdict(ok=False, stage="test", message=message, passed=passed, failed=len(failed))
    for profile in policy.profiles:
        _decide(profile)
    return Verdict(ok=True, sha256=policy.sha256, passed=passed)


# ---- its tests


def tested(texts: PolicyTexts) -> tuple[list[Result], list[Diagnostic]]:
    """What came of the policy's own tests, or what is wrong with their objects."""
    scenes, mistakes = [], []
    for scene, wrong in _scenes(texts):
        mistakes += wrong
        scenes += [scene] if scene is not None else []
    runner = Runner()
    return ([] if mistakes else [result for scene in scenes for result in runner.run(scene)]), mistakes


def _scenes(texts: PolicyTexts) -> Iterator[tuple[Scene | None, list[Diagnostic]]]:
    checking = Checking(texts.origin())
    for key in dict.fromkeys((*texts.roots, *texts.tests)):
        if key not in texts.files:
            continue  # of the shipped library, which is tested when it is built
        module, _ = checking.check(key)
        assert module is not None, key
        fixtures = FixtureTexts(texts.files, PurePosixPath(key).parent, texts.shown)
        for each in module.tests:
            yield scene_of(each, fixtures)


def unmet(failed: list[Result]) -> Iterator[str]:
    for result in failed[:SHOWN]:
        expected = " ".join(result.expect.span.text.split()).removeprefix("expect ")
        yield f'{result.expect.span.where}: "{result.test.name}": expected {expected}: {result.happened}'
    if len(failed) > SHOWN:
        yield f"and {len(failed) - SHOWN} more expectations that are not met"


# ---- a decision


def _decide(profile: Profile) -> None:
    """Each profile decides for a pod, with many nodes and then again with a node more. What it says does not count."""
    scheduler = Scheduler([profile], FirstFace(), unread_fields=UnreadFields.IGNORE)
    for number in range(NODES):
        scheduler.on(SetNode(_node(number)), 0.0)
    for name in ("first", "second"):
        scheduler.on(SetPod(_pod(name, profile.scheduler_name)), 0.0)
    while scheduler.step(0.0) is not None:
        scheduler.effects()


def _node(number: int) -> Node:
    name = f"node-{number}"
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return convert(Node, {"metadata": {"name": name, "uid": name}, "status": status})


def _pod(name: str, scheduler: str) -> Pod:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "x"}}
    return convert(Pod, {"metadata": meta, "spec": {"schedulerName": scheduler, "containers": [container]}})
