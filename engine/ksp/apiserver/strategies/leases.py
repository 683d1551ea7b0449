"""Leases."""

from ksp.apiserver.status import Cause, invalid_value
from ksp.apiserver.strategies.base import Kind
from ksp.apiserver.strategy import Context, Json
from ksp.apiserver.validation.metadata import not_negative


class Leases(Kind):
    """coordination.k8s.io/v1."""

    create_on_update = True
    unconditional_update = False

    def check(self, obj: Json, context: Context) -> list[Cause]:
        spec = obj["spec"]
        seconds = spec.get("leaseDurationSeconds")
        found = not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions")
        if seconds is not None and seconds <= 0:
            return [invalid_value("spec.leaseDurationSeconds", str(seconds), "must be greater than 0"), *found]
        return found
