"""The reflector against a model server with faults: at rest the cache is the server's state, and each step was told."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.state.model_server import Cut, ModelServer, content, failure
from tests.unit.kube.eager_timers import EagerTimers
from tests.unit.kube.recorder import Recorder
from tests.unit.kube.running import Notes

from ksp.kube.watch.reflector import ReflectorSettings
from ksp.kube.watch.resources import Object, key_of
from ksp.kube.watch.shared_informers import SharedInformers

NAMES = st.sampled_from("abcdefg")
CUTS: st.SearchStrategy[Cut] = st.sampled_from(
    ["reset", "half a line", "clean", "silence", "error", "nonsense", "old bookmark"]
)

# Turns of the loop in which all has to come to rest: with every wait over at once that is a matter of hundreds.
TURNS = 3_000


class OnceRecorder(Recorder):
    """Besides, no version of an object is told twice."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: set[tuple[str, str]] = set()

    def on_add(self, obj: Object) -> None:
        super().on_add(obj)
        self._once(obj)

    def on_update(self, old: Object, new: Object) -> None:
        super().on_update(old, new)
        self._once(new)

    def _once(self, value: Object) -> None:
        version = (value.metadata.uid, value.metadata.resource_version)
        assert version not in self.versions, f"{version} is told twice"
        self.versions.add(version)


class ReflectorMachine(RuleBasedStateMachine):
    @initialize(
        streams=st.booleans(),
        asks=st.booleans(),
        compares=st.booleans(),
        page=st.integers(1, 3),
        pause=st.integers(0, 3),
        names=st.sets(NAMES),
    )
    def start(self, streams: bool, asks: bool, compares: bool, page: int, pause: int, names: set[str]) -> None:
        self.loop = asyncio.new_event_loop()
        self.timers = EagerTimers(longest=1e9)
        self.server = ModelServer(streams_lists=streams, compares=compares)
        self.server.pause = pause
        self.uids = 0
        self.kept: dict[str, tuple[str, str]] = {}
        for name in sorted(names):
            self._create(name, good=True)
        self.handler = OnceRecorder()
        self.notes = Notes()
        self.informers = SharedInformers(
            self.server,
            self.timers,
            kinds=["Pod"],
            observer=self.notes,
            settings=ReflectorSettings(page_size=page, watch_list=asks),
        )
        self.informer = self.informers.informer("Pod")
        self.informer.add_handler(self.handler)
        self.task = self.loop.create_task(self.informers.run())

    def teardown(self) -> None:
        if not hasattr(self, "task"):
            return
        try:
            self.rest()
        finally:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                self.loop.run_until_complete(self.task)
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    # --- the cluster -------------------------------------------------------------------------------------------------

    @rule(name=NAMES, good=st.booleans())
    def create(self, name: str, good: bool) -> None:
        self._create(name, good=good)

    def _create(self, name: str, *, good: bool) -> None:
        if f"w/{name}" not in self.server.pods:
            self.uids += 1
            self.server.change("ADDED", content(name, f"uid-{self.uids}", good=good), f"w/{name}")

    @rule(name=NAMES)
    def modify(self, name: str) -> None:
        self._modify(name)

    def _modify(self, name: str) -> None:
        key = f"w/{name}"
        if key in self.server.pods:
            self.kept.pop(key, None)
            uid = self.server.pods[key]["metadata"]["uid"]
            self.server.change("MODIFIED", content(name, uid, good=True), key)

    @rule(name=NAMES)
    def spoil(self, name: str) -> None:
        """From now on the object cannot be read: what is known of it is to be kept."""
        if f"w/{name}" in self.server.pods:
            self.rest()
            held = self.handler.held.get(f"w/{name}")
            if held is not None:
                self.kept[f"w/{name}"] = held
            self._spoil(name)

    def _spoil(self, name: str) -> None:
        key = f"w/{name}"
        if key in self.server.pods:
            uid = self.server.pods[key]["metadata"]["uid"]
            self.server.change("MODIFIED", content(name, uid, good=False), key)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self._delete(name)

    def _delete(self, name: str) -> None:
        if f"w/{name}" in self.server.pods:
            self.kept.pop(f"w/{name}", None)
            self.server.change("DELETED", None, f"w/{name}")

    @rule(name=NAMES, good=st.booleans())
    def recreate(self, name: str, good: bool) -> None:
        self._delete(name)
        self._create(name, good=good)

    # --- the server and the network ----------------------------------------------------------------------------------

    @rule()
    def bookmark(self) -> None:
        self.server.bookmark()

    @rule()
    def unknown_event(self) -> None:
        self.server.unknown_event()

    @rule(how=CUTS, steady=st.booleans())
    def cut(self, how: Cut, steady: bool) -> None:
        self.timers.elapse(10 if steady else 0)
        self.server.cut(how)

    @rule(
        changes=st.lists(
            st.tuples(NAMES, st.sampled_from(["create", "modify", "delete", "recreate", "spoil"])),
            min_size=1, max_size=5,
        ),
        lost=st.booleans(),
    )  # fmt: skip
    def miss(self, changes: list[tuple[str, str]], lost: bool) -> None:
        """The watch breaks, and things happen before the next; where `lost`, it cannot catch up with them."""
        self.rest()
        self.server.cut("reset")
        for name, what in changes:
            self._do(name, what)
        if lost:
            self.server.compact()

    def _do(self, name: str, what: str) -> None:
        match what:
            case "create":
                self._create(name, good=True)
            case "modify":
                self._modify(name)
            case "delete":
                self._delete(name)
            case "recreate":
                self._delete(name)
                self._create(name, good=True)
            case _:
                self._spoil(name)

    @rule(back=st.integers(1, 5))
    def replay(self, back: int) -> None:
        """The next watch sends again what it has sent."""
        self.server.replays = back
        self.server.cut("reset")

    @rule(codes=st.lists(st.sampled_from([0, 0, 1, 400, 401, 403, 404, 410, 429, 500, 503]), max_size=4))
    def fail(self, codes: list[int]) -> None:
        self.server.failures.extend(failure(code) for code in codes)

    @rule(count=st.integers(1, 3))
    def expire_pages(self, count: int) -> None:
        self.server.expiries += count

    @rule(turns=st.integers(1, 40))
    def let_run(self, turns: int) -> None:
        self.loop.run_until_complete(_turns(turns))

    @rule()
    def rest(self) -> None:
        """Until nothing moves any more; then all must be equal."""
        self.loop.run_until_complete(self._rest())
        expected = {
            key: (value["metadata"]["uid"], value["metadata"]["resourceVersion"])
            for key, value in self.server.pods.items()
            if isinstance(value["spec"]["containers"], list)
        }
        spoilt = self.server.pods.keys() - expected.keys()
        held = {
            key_of(pod.metadata): (pod.metadata.uid, pod.metadata.resource_version)
            for pod in self.informer.lister.list()
        }
        assert held == self.handler.held
        assert {key: value for key, value in held.items() if key not in spoilt} == expected
        for key in spoilt & held.keys():
            assert held[key][0] == self.server.pods[key]["metadata"]["uid"], (
                "the last good version is of another object"
            )
        assert {key: held.get(key) for key in self.kept} == self.kept
        assert self.informers.has_synced
        assert self.informers.troubles() == []

    async def _rest(self) -> None:
        for _ in range(TURNS):
            if self.server.idle and not len(self.informer.fifo):
                break
            if self.task.done():
                self.task.result()
            await asyncio.sleep(0)
        else:
            raise AssertionError(f"no rest: {self.notes.failures[-3:]}")
        await _turns(5)

    # --- at any time -------------------------------------------------------------------------------------------------

    @invariant()
    @precondition(lambda self: hasattr(self, "task"))
    def works_on(self) -> None:
        assert not self.task.done(), self.task.exception()

    @invariant()
    @precondition(lambda self: hasattr(self, "task"))
    def lister_agrees_with_what_was_told(self) -> None:
        assert len(self.informer.lister) == len(self.handler.held)


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


TestReflector = ReflectorMachine.TestCase
TestReflector.settings = settings(max_examples=150, stateful_step_count=40)
