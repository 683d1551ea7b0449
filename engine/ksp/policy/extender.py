"""Extenders: HTTP services that have a say in decisions, as kube-scheduler's Policy and configuration name them.

What one is asked, and what its answers mean, is in `ksp.core.extenders`; how it is asked in `ksp.kube.extenders`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ksp.model.pod import PodSpec

DEFAULT_TIMEOUT: Final = 5.0  # seconds

_USER: Final = re.compile(r"^([^/?#]*//)?[^/?#]*@")


@dataclass(frozen=True, slots=True)
class ExtenderTLS:
    """How an extender proves who it is, and ksp to it. Files by their paths, `*_data` as PEM."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = field(default=b"", repr=False)
    ca_data: bytes = b""


@dataclass(frozen=True, slots=True)
class Extender:
    """One extender. A verb is the last part of the URL that is asked, "" if it is not asked for that.

    `timeout` is in seconds. `managed_resources`: only pods that ask for one of them are its business; all pods are if
    there are none. `ignored_resources` are those of which NodeResourcesFit takes no notice. An `ignorable` one that
    fails is left out; else the attempt fails. A `node_cache_capable` one is sent names of nodes, not nodes."""

    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    enable_https: bool = False
    tls: ExtenderTLS | None = None
    timeout: float = DEFAULT_TIMEOUT
    node_cache_capable: bool = False
    managed_resources: frozenset[str] = frozenset()
    ignored_resources: frozenset[str] = frozenset()
    ignorable: bool = False

    @property
    def name(self) -> str:
        """What it is called before others: its address, without a user and a password, which should not be there."""
        return _USER.sub(r"\1", self.url_prefix)

    def is_interested(self, spec: PodSpec) -> bool:
        """Whether a pod is its business: a container or init container requests or limits a managed resource."""
        managed = self.managed_resources
        if not managed:
            return True
        for each in (*spec.containers, *spec.init_containers):  # for each attempt, so it is written to be quick
            if not (managed.isdisjoint(each.resources.requests) and managed.isdisjoint(each.resources.limits)):
                return True
        return False
