"""Policies in a ConfigMap that is read through the API.

Keys that end in `.ksp` are policies, those that end in `.test.ksp` their tests; imports go among keys, and to the
shipped library. Or there is one key `policy.cfg` with a legacy Policy, as kube-scheduler has it. Other keys count where
a test names them with `from`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ksp.kube.auth.config import SERVICE_ACCOUNT
from ksp.model.config_map import ConfigMap
from ksp.policy.texts import LEGACY_KEY, TESTS, PolicyTexts
from ksp.runtime.reload.gathering import fixtures
from ksp.runtime.reload.source import MAX_BYTES, SourceError

SYSTEM: Final = "kube-system"
"""The namespace outside of a cluster, and the default of kube-scheduler."""
NAMED: Final = 20
"""Keys that a message names."""


@dataclass(frozen=True, slots=True)
class ConfigMapSource:
    """`--policy-configmap`: a ConfigMap of that namespace."""

    config_map: str
    namespace: str
    kind: str = "ConfigMap"

    @classmethod
    def of(cls, name: str, namespace: str | None, service_account: Path = SERVICE_ACCOUNT) -> ConfigMapSource:
        """What the flags say: `NAME` or `NAMESPACE/NAME`, and the namespace if --policy-configmap-namespace names it.
        Raises SourceError for another namespace than the scheduler's own which that flag does not name."""
        own = own_namespace(service_account)
        given, slash, rest = name.partition("/")
        wanted, name = (given, rest) if slash else (namespace or own, name)
        if not name or not wanted or "/" in name:
            raise SourceError(f"--policy-configmap: `{given}{slash}{rest}` is not the name of a ConfigMap")
        if wanted not in {own, namespace}:
            raise SourceError(
                f"the ConfigMap {wanted}/{name} is not in the scheduler's own namespace ({own}), and whoever may "
                f"change it decides where pods run: if that is meant, say --policy-configmap-namespace={wanted}"
            )
        return cls(name, wanted)

    @property
    def name(self) -> str:
        """Its name with its namespace."""
        return f"{self.namespace}/{self.config_map}"

    @property
    def texts(self) -> PolicyTexts | None:
        """Only the cluster knows."""
        return None

    def missing(self) -> SourceError:
        """Why there are no texts if there is no such ConfigMap."""
        return SourceError(
            f"there is no ConfigMap {self.name}: create it, for instance with `ksp bundle DIR --name {self.config_map} "
            f"--namespace {self.namespace} -o FILE` and `kubectl apply -f FILE`, where DIR has the *.ksp files"
        )

    def texts_of(self, found: ConfigMap) -> PolicyTexts:
        """What it holds. Raises SourceError."""
        policies = sorted(key for key in found.data if key.endswith(".ksp"))
        roots = tuple(key for key in policies if not key.endswith(TESTS))
        binary = sorted(key for key in found.binary_data if key.endswith(".ksp") or key == LEGACY_KEY)
        if binary:
            raise self._error(f"the keys {_listed(binary)} are binary data: a policy is UTF-8 text")
        if policies and LEGACY_KEY in found.data:
            raise self._error(f"it has both {_listed(policies)} and {LEGACY_KEY}: keep one kind of policy")
        if sum(map(len, found.data.values())) > MAX_BYTES:
            raise self._error(f"it is larger than {MAX_BYTES // 2**20} MiB")
        if LEGACY_KEY in found.data:
            return PolicyTexts(self.name, {LEGACY_KEY: found.data[LEGACY_KEY]}, (), legacy=LEGACY_KEY, shown=self.name)
        if not roots:
            there = f"its keys are {_listed(sorted(found.data))}" if found.data else "it has no keys"
            raise self._error(f"it has no key that ends in .ksp, and no {LEGACY_KEY}: {there}")
        return PolicyTexts(self.name, _with_fixtures(found.data, policies), roots, shown=self.name)

    def _error(self, why: str) -> SourceError:
        return SourceError(f"the ConfigMap {self.name}: {why}")


def own_namespace(service_account: Path = SERVICE_ACCOUNT) -> str:
    """The namespace that the scheduler runs in; outside of a cluster kube-system."""
    try:
        return (service_account / "namespace").read_text("utf-8").strip() or SYSTEM
    except (OSError, ValueError):
        return SYSTEM


def _with_fixtures(data: Mapping[str, str], policies: list[str]) -> dict[str, str]:
    files = {key: data[key] for key in policies}
    for key in policies:
        files.update({path: data[path] for path in fixtures(data[key], key) if path in data})
    return files


def _listed(keys: list[str]) -> str:
    more = len(keys) - NAMED
    return ", ".join(keys[:NAMED]) + (f" and {more} more" if more > 0 else "")
