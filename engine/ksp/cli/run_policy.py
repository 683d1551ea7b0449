"""From the flags of `ksp run` to where the rules come from.

They come from one place: files, a ConfigMap, or what is shipped. Among the flags that kube-scheduler 1.19 has for that
its order counts; ksp's own exclude all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import click

from ksp.cli.scheduler_flags.given import Given
from ksp.policy.assemble import Policy, Settings, assemble
from ksp.policy.errors import PolicyError
from ksp.policy.load import DEFAULT
from ksp.policy.texts import PolicyTexts
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.source import PolicySource, SourceError
from ksp.runtime.reload.sources import FileSource, FolderSource, LegacyFileSource
from ksp.source.origin import SHIPPED

PROVIDERS: Final = {"DefaultProvider": DEFAULT, "ClusterAutoscalerProvider": "ksp:cluster-autoscaler.ksp"}
NEEDS_FILE: Final = "policyConfigFile: Required value: required when --use-legacy-policy-config is true"
"""As kube-scheduler 1.19 says it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Where the rules come from: `source` is None for shipped ones, and `shipped` their file if a flag names it.
    `provider` is the one that counts, "" for none. `notes` say which flags have no effect."""

    source: PolicySource | None
    shipped: str = ""
    provider: str = ""
    notes: tuple[str, ...] = ()

    def texts(self, default: str) -> PolicyTexts | None:
        """The texts; None where only the cluster knows them. `default` is the file of the library where no flag says
        which. Raises PolicyError."""
        if self.source is None:
            root = self.shipped or default
            return PolicyTexts(root, {}, (root,))
        if not isinstance(self.source, FileSource | FolderSource | LegacyFileSource):
            return None
        try:
            return self.source.read()
        except SourceError as error:
            raise PolicyError(error.diagnostics, error.messages) from error


def chosen(given: Given) -> Chosen:
    """What the flags say. Raises UsageError where they exclude each other, PolicyError for a ConfigMap that may not be
    used."""
    _exclude(given)
    file, folder = given["policy-file"], given["policy-dir"]
    if file is not None and file.startswith(SHIPPED):
        return Chosen(None, file, notes=_of_namespace(given))
    if file is not None:
        return Chosen(FileSource(file), notes=_of_namespace(given))
    if folder is not None:
        return Chosen(FolderSource(folder), notes=_of_namespace(given))
    return _as_kube_scheduler(given)


def _exclude(given: Given) -> None:
    names = ("policy-file", "policy-dir", "policy-configmap", "policy-config-file", "algorithm-provider")
    flags = [f"--{name}" for name in names if given[name] is not None]
    if given["use-legacy-policy-config"] and given["policy-config-file"] is None:
        flags.append("--use-legacy-policy-config")
    if len(flags) > 1 and {"--policy-file", "--policy-dir"} & set(flags):
        raise click.UsageError(f"{' and '.join(flags)} exclude each other: the rules come from one place")


def _as_kube_scheduler(given: Given) -> Chosen:
    """--use-legacy-policy-config, then --policy-configmap, then --policy-config-file, then --algorithm-provider."""
    file, config_map, provider = given["policy-config-file"], given["policy-configmap"], given["algorithm-provider"]
    notes = []
    if given["use-legacy-policy-config"] or (file is not None and config_map is None):
        if file is None:
            raise PolicyError(messages=[NEEDS_FILE])
        source: PolicySource = LegacyFileSource(file)
        if config_map is not None:
            notes.append("--policy-configmap has no effect beside --use-legacy-policy-config")
    elif config_map is not None:
        source = _config_map(config_map, given["policy-configmap-namespace"])
        if file is not None:
            notes.append(
                "--policy-config-file has no effect beside --policy-configmap, but with --use-legacy-policy-config"
            )
    else:
        return Chosen(None, PROVIDERS.get(provider, ""), provider or "", _of_namespace(given))
    if provider is not None:
        notes.append(f"--algorithm-provider has no effect beside a policy from {source.name}")
    return Chosen(source, notes=(*notes, *(() if isinstance(source, ConfigMapSource) else _of_namespace(given))))


def _of_namespace(given: Given) -> tuple[str, ...]:
    if given["policy-configmap-namespace"] is None or given["policy-configmap"] is not None:
        return ()
    return ("--policy-configmap-namespace has no effect without --policy-configmap",)


def _config_map(name: str, namespace: str | None) -> ConfigMapSource:
    try:
        return ConfigMapSource.of(name, namespace)
    except SourceError as error:
        raise PolicyError(error.diagnostics, error.messages) from error


def shipped_policy() -> Policy:
    """The rules where no flag says otherwise."""
    return assemble(PolicyTexts(DEFAULT, {}, (DEFAULT,)), Settings())
