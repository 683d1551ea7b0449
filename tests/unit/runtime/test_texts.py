"""What rules say arrives at users clean and cut, whatever it quotes: in the event, and in the pod's condition."""

from __future__ import annotations

import aiohttp
from tests.unit.runtime.embedded import Json, node, pod, pod_until, served

from ksp.kube.events.objects import NOTE_LIMIT
from ksp.kube.write.conditions import MESSAGE_LIMIT
from ksp.policy.assemble import Settings, assemble
from ksp.policy.texts import PolicyTexts
from ksp.runtime.app import App, running
from ksp.runtime.options import Options

LOUD = """
predicate Loud { deny "heard ${pod.annotations['say']}" when node.podCount >= 0 }
provider P { predicates { Loud } }
profile "default-scheduler" uses P {}
"""
SAID = "a\u202eb\nc\u2028d\x1b[31m\x85" + "é" * 20_000


async def events(url: str) -> list[Json]:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/api/v1/namespaces/default/events") as answer:
        return list((await answer.json())["items"])


async def test_a_reason_that_quotes_what_it_should_not_is_cleaned_and_cut() -> None:
    policy = assemble(PolicyTexts("loud", {"loud.ksp": LOUD}, ("loud.ksp",)), Settings())
    speaker = pod("speaker")
    speaker["metadata"]["annotations"] = {"say": SAID}
    async with served() as server:
        server.load([node("n"), speaker])
        async with running(App(Options(policy, master=server.url, port=None, seed=1), environ={})):
            told = await pod_until(server, "speaker", lambda found: found["status"].get("conditions"))
        (event,) = [each for each in await events(server.url) if each["reason"] == "FailedScheduling"]
    (condition,) = told["status"]["conditions"]
    for text, limit in ((event["message"], NOTE_LIMIT), (condition["message"], MESSAGE_LIMIT)):
        assert text.startswith("0/1 nodes are available: 1 heard a b c d [31m é")
        assert text.isprintable()
        assert text.endswith("é ...")
        assert limit - 2 <= len(text.encode()) <= limit
