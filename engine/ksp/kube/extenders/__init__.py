"""Extenders over HTTP: their wire format, and who asks them.

wire      bodies and answers, as k8s.io/kube-scheduler/extender/v1 has them
client    one extender: connections, time and size limits, and what its failures mean
trust     its TLS, from files that may change
"""

from ksp.kube.extenders.client import Asked, ExtenderClient, ExtenderError, Outcome
from ksp.kube.extenders.wire import FilterResult, NodeBodies, Removal, VictimBodies

__all__ = [
    "Asked", "ExtenderClient", "ExtenderError", "FilterResult", "NodeBodies", "Outcome", "Removal", "VictimBodies",
]  # fmt: skip
