"""A handler that writes down what it is told, and judges whether it makes sense."""

from __future__ import annotations

from ksp.kube.watch.resources import Object, key_of


class Recorder:
    """`told`: `+key@version`, `key@old>new`, `-key@version` (`-?` where the final state is not known), in order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.held: dict[str, tuple[str, str]] = {}

    def on_add(self, obj: Object) -> None:
        key, version = key_of(obj.metadata), obj.metadata.resource_version
        assert key not in self.held, f"{key} is added twice"
        self.held[key] = (obj.metadata.uid, version)
        self.told.append(f"+{key}@{version}")

    def on_update(self, old: Object, new: Object) -> None:
        key, version = key_of(new.metadata), new.metadata.resource_version
        before = (old.metadata.uid, old.metadata.resource_version)
        assert self.held.get(key) == before, f"{key} was not {before}"
        assert new.metadata.uid == old.metadata.uid, f"{key} is another object"
        assert version != old.metadata.resource_version, f"nothing happened to {key}"
        self.held[key] = (new.metadata.uid, version)
        self.told.append(f"{key}@{old.metadata.resource_version}>{version}")

    def on_delete(self, obj: Object, known_final_state: bool) -> None:
        key = key_of(obj.metadata)
        assert self.held.pop(key, ("", ""))[0] == obj.metadata.uid, f"{key} was not there"
        self.told.append(f"-{'' if known_final_state else '?'}{key}@{obj.metadata.resource_version}")
