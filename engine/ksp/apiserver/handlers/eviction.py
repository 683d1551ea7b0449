"""POST pods/NAME/eviction: a delete that disruption budgets may refuse."""

from typing import Final

from ksp.apiserver.codec.api_types import types_of
from ksp.apiserver.codec.decoder import decode_part
from ksp.apiserver.codec.go_times import write_time
from ksp.apiserver.handlers.deletion import delete
from ksp.apiserver.status import bad_request, conflict, not_found, plain_error, success, too_many_requests
from ksp.apiserver.strategies.label_selectors import matches
from ksp.apiserver.strategies.pod_conditions import set_condition
from ksp.apiserver.strategy import ApiStatusError, Context, DeleteOptions, Json

BUDGETS: Final = "poddisruptionbudgets.policy"
RETRY_SECONDS: Final = 10
"""After which a client may ask again while a budget is new to its controller."""

_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_FREE_PHASES: Final = frozenset({"Pending", "Succeeded", "Failed"})
"""Pods in these phases do not count as healthy, so no budget protects them."""


def evict(name: str, body: Json, context: Context) -> tuple[int, Json]:
    """Raises ApiStatusError: 404, 409, 429, and 500 for two budgets."""
    minor = context.version.minor
    body = decode_part(body, types_of(minor)["policy.v1.Eviction"], minor, "Eviction")
    if body["metadata"].get("name", name) != name:
        raise bad_request("name in URL does not match name in Eviction object")
    pod = context.objects.get("pods", context.namespace, name)
    if pod is None:
        raise not_found("", "pods", name)
    options = _options(body, context)
    _check_uid(pod, options)
    if pod["status"].get("phase") not in _FREE_PHASES and not pod["metadata"].get("deletionTimestamp"):
        _take_from_budget(pod, context)
    if context.version.disruption_target and not pod["metadata"].get("deletionTimestamp"):
        pod = context.objects.put("pods", _marked(pod, context))
    delete(pod, options, context)
    return 201, success(201)


def _options(body: Json, context: Context) -> DeleteOptions:
    given = body.get("deleteOptions") or {}
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        grace_period=given.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=context.dry_run,
    )


def _check_uid(pod: Json, options: DeleteOptions) -> None:
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    if options.uid is not None and options.uid != uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict("", "Pod", name, why)


def _marked(pod: Json, context: Context) -> Json:
    status = {**pod["status"]}
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    set_condition(status, condition, context)
    return {**pod, "status": status}


def _take_from_budget(pod: Json, context: Context) -> None:
    """Counts the disruption on the one budget that selects the pod."""
    labels = pod["metadata"].get("labels") or {}
    budgets = context.objects.list(BUDGETS, context.namespace)
    found = [budget for budget in budgets if _protects(budget["spec"].get("selector"), labels, context)]
    if not found:
        return
    if len(found) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise plain_error(500, text)
    budget = found[0]
    if context.version.unready_evicted and not _is_ready(pod) and _lets_unready_go(budget):
        return
    _check_budget(budget, context)
    context.objects.put(BUDGETS, _taken(budget, pod["metadata"]["name"], context))


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each.get("status") == "True" for each in conditions)


def _lets_unready_go(budget: Json) -> bool:
    """What is not healthy anyway does not count, as long as enough pods are, or always if the budget says so."""
    status = budget["status"]
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    wanted: int = status["desiredHealthy"]
    healthy: int = status["currentHealthy"]
    return 0 < wanted <= healthy


def _protects(selector: Json | None, labels: Json, context: Context) -> bool:
    """An empty selector means no pod in policy/v1beta1, every pod in policy/v1."""
    if not selector:
        return selector is not None and context.version.empty_budget_is_all
    return matches(selector, labels)


def _check_budget(budget: Json, context: Context) -> None:
    meta, status = budget["metadata"], budget["status"]
    name = meta["name"]
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        wait = RETRY_SECONDS if context.version.eviction_retry_after else 0
        raise _refused(f"The disruption budget {name} is still being processed by the server.", wait)
    if status["disruptionsAllowed"] > 0:
        return
    wanted, healthy = status["desiredHealthy"], status["currentHealthy"]
    if healthy > wanted and context.version.eviction_says_currently:
        raise _refused(f"The disruption budget {name} does not allow evicting pods currently")
    raise _refused(f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently")


def _refused(why: str, retry_after: int = 0) -> ApiStatusError:
    return too_many_requests(_REFUSED, retry_after, [{"reason": "DisruptionBudget", "message": why}])


def _taken(budget: Json, pod: str, context: Context) -> Json:
    """The budget with one disruption less, and the pod noted until its controller has seen it go."""
    status = {**budget["status"]}
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: write_time(context.now)}
    if status["disruptionsAllowed"] == 0 and context.version.disruption_target:
        status["conditions"] = [
            *(each for each in status.get("conditions") or () if each["type"] != "DisruptionAllowed"),
            {
                "type": "DisruptionAllowed",
                "status": "False",
                "observedGeneration": status.get("observedGeneration", 0),
                "lastTransitionTime": write_time(context.now),
                "reason": "InsufficientPods",
                "message": "",
            },
        ]
    return {**budget, "status": status}
