"""Conditions of pods."""

from ksp.apiserver.codec.go_times import write_time
from ksp.apiserver.strategy import Context, Json


def set_condition(status: Json, condition: Json, context: Context) -> None:
    """Sets a condition by its type in a status that may be changed; its time moves only if its status changes."""
    conditions = [dict(each) for each in status.get("conditions") or ()]
    place = next((at for at, each in enumerate(conditions) if each["type"] == condition["type"]), len(conditions))
    old = conditions[place : place + 1]
    same = bool(old) and old[0].get("status") == condition["status"]
    moment = old[0].get("lastTransitionTime") if same else write_time(context.now)
    conditions[place:] = [
        {**condition, "lastProbeTime": None, "lastTransitionTime": moment},
        *conditions[place + 1 :],
    ]
    status["conditions"] = conditions
