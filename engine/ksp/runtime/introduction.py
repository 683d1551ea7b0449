"""What the log says first: which ksp this is, what it was told, and by which rules it decides."""

from __future__ import annotations

import logging
import platform

from ksp import __version__
from ksp.kube.auth.cluster import Cluster
from ksp.policy.assemble import Policy
from ksp.runtime.log import entry
from ksp.runtime.options import Options

_log = logging.getLogger(__name__)


def say_what_starts(options: Options, cluster: Cluster) -> None:
    _log.info(entry("ksp starts", version=__version__, python=platform.python_version()))
    _log.info(entry("feature gates", EnableEquivalenceClassCache=str(options.equivalence_classes).lower()))
    _log.info(entry("limits", **_limits(options)))
    _log.info(entry("cluster", server=cluster.server, found_in=cluster.origin))


def say_what_decides(policy: Policy, options: Options) -> None:
    """The policy that decides from now on, and what is to be warned of in it."""
    for profile in policy.profiles:
        about = {
            "scheduler": profile.scheduler_name,
            "predicates": len(profile.predicates),
            "priorities": len(profile.priorities),
            "percentageOfNodesToScore": profile.percentage,
        }
        _log.info(entry("profile", **about))
    for extender in policy.extenders:
        verbs = (extender.filter_verb, extender.prioritize_verb, extender.preempt_verb, extender.bind_verb)
        _log.info(
            entry("extender", url=extender.name, verbs=",".join(filter(None, verbs)), ignorable=extender.ignorable)
        )
    _log.info(entry("policy", policy=policy.name, sha256=policy.sha256, unread_fields=options.unread_fields.value))
    for warning in policy.warnings:
        _log.warning(entry("policy warning", place=warning.span.where, code=warning.code, message=warning.message))
    for note in policy.notes:
        _log.warning(entry("policy warning", message=note))


def _limits(options: Options) -> dict[str, object]:
    if options.qps <= 0:
        return {"qps": "none", "bindings_in_flight": options.binds}
    note = (
        f"at most {options.qps:g} bindings a second in the long run, {options.burst} at once; --kube-api-qps raises it"
    )
    return {"qps": options.qps, "burst": options.burst, "bindings_in_flight": options.binds, "note": note}
