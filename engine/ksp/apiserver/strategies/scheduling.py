"""Priority classes and disruption budgets."""

from typing import ClassVar, Final

from ksp.apiserver.admission.priority import default_class
from ksp.apiserver.status import Cause, forbidden, forbidden_field, invalid_value
from ksp.apiserver.strategies.base import Defaults, Kind
from ksp.apiserver.strategy import Context, Json
from ksp.apiserver.validation.metadata import one_of, shown, validate_selector

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class PriorityClasses(Kind):
    """scheduling.k8s.io/v1."""

    defaults: ClassVar[Defaults] = {"preemptionPolicy": "PreemptLowerPriority"}

    def default_more(self, obj: Json, context: Context) -> None:
        obj.setdefault("value", 0)

    def admit_create(self, obj: Json, context: Context) -> None:
        self._one_default(obj, context)

    def admit_update(self, new: Json, old: Json, context: Context) -> None:
        self._one_default(new, context)

    @staticmethod
    def _one_default(obj: Json, context: Context) -> None:
        found = default_class(context) if obj.get("globalDefault") else None
        name = obj["metadata"].get("name", "")
        if found is not None and found["metadata"]["name"] != name:
            first = found["metadata"]["name"]
            why = f"PriorityClass {first} is already marked as default. Only one default can exist"
            raise forbidden(context.resource.group, context.resource.plural, name, why)

    def admit_delete(self, obj: Json, context: Context) -> None:
        if obj["metadata"]["name"] in SYSTEM_CLASSES:
            why = "this is a system priority class and cannot be deleted"
            raise forbidden(context.resource.group, context.resource.plural, obj["metadata"]["name"], why)

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        obj["metadata"]["generation"] = 1

    def check(self, obj: Json, context: Context) -> list[Cause]:
        name, value = obj["metadata"].get("name", ""), obj["value"]
        found: list[Cause] = []
        if name.startswith("system-"):
            if SYSTEM_CLASSES.get(name) != value:
                text = "priority class names with 'system-' prefix are reserved for system use only. error: "
                text += f"{name} is not a known system priority class"
                found.append(forbidden_field("metadata.name", text))
        elif value > HIGHEST_USER_PRIORITY:
            text = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            found.append(forbidden_field("value", text))
        policies = ("Never", "PreemptLowerPriority")
        return [*found, *one_of(obj["preemptionPolicy"], "preemptionPolicy", policies, context.version)]

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        found: list[Cause] = []
        if new["value"] != old["value"]:
            field = "Value" if context.version.capital_value else "value"
            found.append(forbidden_field(field, "may not be changed in an update."))
        if new["preemptionPolicy"] != old["preemptionPolicy"]:
            found.append(invalid_value("preemptionPolicy", shown(new["preemptionPolicy"]), "field is immutable"))
        return found


class PodDisruptionBudgets(Kind):
    """policy/v1 and policy/v1beta1."""

    generation = True
    unconditional_update = False

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        super().prepare_for_create(obj, context)
        if not context.loading:
            numbers = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
            obj["status"] = dict.fromkeys(numbers, 0)

    def check(self, obj: Json, context: Context) -> list[Cause]:
        spec, version = obj["spec"], context.version
        found: list[Cause] = []
        if "minAvailable" in spec and "maxUnavailable" in spec:
            text = "minAvailable and maxUnavailable cannot be both set"
            found.append(invalid_value("spec", shown(spec), text))
        for name in ("minAvailable", "maxUnavailable"):
            found += _validate_amount(spec.get(name), f"spec.{name}")
        return [*found, *validate_selector(spec.get("selector"), "spec.selector", version)]


def _validate_amount(amount: int | str | None, field: str) -> list[Cause]:
    """A number that is not negative, or up to 100%."""
    if isinstance(amount, int):
        return [] if amount >= 0 else [invalid_value(field, str(amount), "must be greater than or equal to 0")]
    if amount is None:
        return []
    digits = amount.removesuffix("%")
    if not (amount.endswith("%") and digits.isascii() and digits.isdigit()):
        text = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
        return [invalid_value(field, shown(amount), f"{text}regex used for validation is '[0-9]+%')")]
    return [] if int(digits) <= 100 else [invalid_value(field, shown(amount), "must not be greater than 100%")]
