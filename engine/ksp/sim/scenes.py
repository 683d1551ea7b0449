"""The clusters of `test` blocks: their objects, from the test itself and from its fixtures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec
from msgspec.structs import replace

from ksp.check.typed import Test, TestObject
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo
from ksp.model.meta import ObjectMeta
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.testing import amount_error, decoded, mistake, object_mistakes
from ksp.policy.texts import shown_as
from ksp.sim.cases import FINISHED, OBJECTS
from ksp.sim.manifests import ManifestError, Manifests, load, load_text
from ksp.source.diagnostic import Diagnostic

KIND_OF = {struct: kind for kind, struct in OBJECTS.items()}


@dataclass(frozen=True, slots=True)
class Scene:
    """A test with its objects, by the names that it has for them."""

    test: Test
    objects: Mapping[str, msgspec.Struct]

    def node_name(self, name: str) -> str:
        """The name that a node has in the cluster, which of one from a file may be another than in the test."""
        node = self.objects[name]
        assert isinstance(node, Node)
        return node.metadata.name

    def cluster(self, asked: str) -> tuple[ClusterState, PodInfo]:
        """The cluster without the pod that is asked about, and that pod."""
        state = ClusterState()
        for given in self.test.objects:
            made = self.objects[given.name]
            if isinstance(made, Node):
                state.set_node(made)
            elif not isinstance(made, Pod):
                metadata: ObjectMeta = getattr(made, "metadata")  # noqa: B009 - every kind has it, not every struct
                state.set_object(KIND_OF[type(made)], metadata.namespace, metadata.name, made)
        for given in self.test.objects:
            made = self.objects[given.name]
            if isinstance(made, Pod) and given.on and given.name != asked and made.status.phase not in FINISHED:
                node = self.node_name(given.on)
                state.add_pod(self._pod(given.name, replace(made, spec=replace(made.spec, node_name=node))), node)
        pod = self.objects[asked]
        assert isinstance(pod, Pod)
        return state, self._pod(asked, pod)

    def _pod(self, name: str, pod: Pod) -> PodInfo:
        """Pods from one file have one uid there; here each has its own."""
        return PodInfo.of(replace(pod, metadata=replace(pod.metadata, uid=f"{pod.metadata.namespace}/{name}")))


@dataclass(frozen=True, slots=True)
class FixtureTexts:
    """Fixtures in memory, by path; those of tests whose file lies at `folder`. `shown` is put before a path to name it
    to the user."""

    texts: Mapping[str, str]
    folder: PurePosixPath
    shown: str = ""

    def place(self, path: str) -> str:
        """What the user calls the fixture."""
        return shown_as(self.shown, str(self.folder / path))

    def load(self, path: str) -> Manifests:
        """Its objects. Raises ManifestError."""
        text = self.texts.get(str(self.folder / path))
        if text is None:
            raise ManifestError(self.place(path), 0, "", "there is no such file")
        return load_text(self.place(path), text)


@dataclass(frozen=True, slots=True)
class FixtureFolder:
    """Fixtures in files, beside and below a folder."""

    folder: Path

    def place(self, path: str) -> str:
        """What the user calls the fixture."""
        return str(self.folder / path)

    def load(self, path: str) -> Manifests:
        """Its objects. Raises ManifestError."""
        return load([self.place(path)])


def scene_of(test: Test, fixtures: Path | FixtureTexts) -> tuple[Scene | None, list[Diagnostic]]:
    """The scene of a test with its fixtures, or whose file lies in that folder, and what is wrong with its objects
    beyond what the checker found; None if anything is."""
    where = FixtureFolder(fixtures) if isinstance(fixtures, Path) else fixtures
    mistakes = list(object_mistakes(test))
    objects: dict[str, msgspec.Struct] = {}
    for given in test.objects:
        made = _from_file(given, where) if given.path else decoded(given)
        if isinstance(made, Diagnostic):
            mistakes.append(made)
        elif made is not None:
            objects[given.name] = made
    mistakes += _same_node(test, objects)
    complete = not mistakes and len(objects) == len(test.objects)
    return (Scene(test, objects) if complete else None), mistakes


def _from_file(given: TestObject, fixtures: FixtureFolder | FixtureTexts) -> msgspec.Struct | Diagnostic:
    """The one object of the kind in the file, or of several the one with the name that the test uses."""
    try:
        found = [each for each in fixtures.load(given.path).objects if each.kind == given.kind]
    except ManifestError as error:
        return mistake(given, f"the fixture of `{given.name}`: {error}")
    chosen = found if len(found) == 1 else [each for each in found if each.name == given.name]
    if len(chosen) != 1:
        many = f"there are {len(found)} of the kind {given.kind}" if found else f"there is no {given.kind}"
        called = f", none of them called {given.name}" if found else ""
        return mistake(given, f"the fixture of `{given.name}`: {fixtures.place(given.path)}: {many} in it{called}")
    wrong = amount_error(chosen[0].value)
    return mistake(given, f"the fixture of `{given.name}`: {chosen[0].file}: {wrong}") if wrong else chosen[0].value


def _same_node(test: Test, objects: Mapping[str, msgspec.Struct]) -> Iterator[Diagnostic]:
    first: dict[str, str] = {}
    for given in test.objects:
        node = objects.get(given.name)
        if isinstance(node, Node) and first.setdefault(node.metadata.name, given.name) != given.name:
            name = node.metadata.name
            yield mistake(given, f"`{given.name}` and `{first[name]}` are both the node {name}", "the same node")
