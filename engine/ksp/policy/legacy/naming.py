"""The names that a legacy Policy uses, resolved: which predicates and priorities are meant, and which arguments of
plugins theirs add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ksp.check.report import nearest
from ksp.policy.field_errors import Steps
from ksp.policy.legacy.mistakes import Mistake, mistake, quoted
from ksp.policy.legacy.model import (
    CapacityRatio,
    LabelPreference,
    LabelsPresence,
    LegacyPolicy,
    Predicate,
    PredicateArgument,
    Priority,
    PriorityArgument,
    ServiceAffinity,
    ServiceAntiAffinity,
)
from ksp.policy.legacy.names import (
    CAPACITY_RATIO,
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    EQUAL_PRIORITY,
    HISTORICAL,
    LABELS_PREDICATE,
    MANDATORY,
    NODE_LABEL,
    PREDICATE_ALIASES,
    PREDICATES,
    PRIORITIES,
    PRIORITY_ALIASES,
    SERVICE_AFFINITY,
    SERVICE_AFFINITY_PREDICATE,
)

INTERNAL = frozenset({NODE_LABEL, SERVICE_AFFINITY, CAPACITY_RATIO})
"""Names of priorities that only arguments give."""

Label = tuple[str, Steps]
"""A label, and where it stands."""


@dataclass(slots=True)
class Labels:
    """The labels that the arguments of predicates and priorities name, in the order of the Policy."""

    affinity: list[Label] = field(default_factory=list)
    anti_affinity: list[Label] = field(default_factory=list)
    present: list[Label] = field(default_factory=list)
    absent: list[Label] = field(default_factory=list)
    preferred: list[Label] = field(default_factory=list)
    avoided: list[Label] = field(default_factory=list)


@dataclass(slots=True)
class Named:
    """What the names come to. `predicates` and `priorities` are the meant ones by the name that kube-scheduler gives
    them, with the place in the Policy that says so last, () where none does; priorities with their weights, before they
    are multiplied. `ratio` is None without such arguments. `configured` are the plugins that got arguments, were they
    but empty lists."""

    predicates: dict[str, Steps] = field(default_factory=dict)
    priorities: dict[str, tuple[int, Steps]] = field(default_factory=dict)
    labels: Labels = field(default_factory=Labels)
    ratio: tuple[CapacityRatio, Steps] | None = None
    configured: set[str] = field(default_factory=set)
    mistakes: list[Mistake] = field(default_factory=list)
    warnings: list[Mistake] = field(default_factory=list)


def named(policy: LegacyPolicy) -> Named:
    """All names of a Policy, resolved."""
    made = Named()
    if policy.predicates is None:
        made.predicates = dict.fromkeys(DEFAULT_PREDICATES, ())
    for i, predicate in enumerate(policy.predicates or ()):
        _predicate(made, predicate, ("predicates", i))
    for name in MANDATORY:
        made.predicates.setdefault(name, ())
    if policy.priorities is None:
        made.priorities = {name: (weight, ()) for name, weight in DEFAULT_PRIORITIES.items()}
    for i, priority in enumerate(policy.priorities or ()):
        _priority(made, priority, ("priorities", i))
    _without_labels(made)
    return made


def _predicate(made: Named, predicate: Predicate, steps: Steps) -> None:
    name, arguments = PREDICATE_ALIASES.get(predicate.name, predicate.name), predicate.arguments
    if arguments is not None and len(arguments) != 1:
        said = f"Exactly 1 predicate argument is required, numArgs: {len(arguments)}, Predicate: {predicate.name}"
        made.mistakes.append(mistake(said, (*steps, "argument")))
    elif name in PREDICATES:
        made.predicates[name] = steps
        if arguments:
            made.warnings.append(_unread(predicate.name, "predicate", steps))
    elif not arguments:
        known = [*PREDICATES, *PREDICATE_ALIASES]
        made.mistakes.append(_unknown("Predicate", predicate.name, known, (*steps, "name")))
    else:
        made.predicates[predicate_meant(predicate)] = steps
        _predicate_argument(made, arguments[0], (*steps, "argument"))


def _predicate_argument(made: Named, argument: PredicateArgument, at: Steps) -> None:
    """Adds what an argument says."""
    match argument:
        case ServiceAffinity(labels):
            made.configured.add(SERVICE_AFFINITY)
            made.labels.affinity += _placed(labels, (*at, "serviceAffinity"))
        case LabelsPresence(labels, presence):
            made.configured.add(NODE_LABEL)
            into = made.labels.present if presence else made.labels.absent
            into += _placed(labels, (*at, "labelsPresence"))


def _placed(labels: Iterable[str], at: Steps) -> list[Label]:
    return [(label, (*at, "labels", i)) for i, label in enumerate(labels)]


def _priority(made: Named, priority: Priority, steps: Steps) -> None:
    arguments = priority.arguments
    if priority.name == EQUAL_PRIORITY:
        made.warnings.append(mistake(f"{EQUAL_PRIORITY} prefers nothing, and is left out", steps))
        return
    name = PRIORITY_ALIASES.get(priority.name, priority.name)
    if arguments is not None and len(arguments) > 1:
        said = f"Exactly 1 priority argument is required, numArgs: {len(arguments)}, Priority: {priority.name}"
        made.mistakes.append(mistake(said, (*steps, "argument")))
    elif name in PRIORITIES:
        _weigh(made, name, priority, steps)
        if arguments:
            made.warnings.append(_unread(priority.name, "priority", steps))
    elif arguments:
        _weigh(made, priority_meant(priority), priority, steps)
        _priority_argument(made, arguments[0], (*steps, "argument"))
    elif arguments is None:
        known = [*(PRIORITIES.keys() - INTERNAL), *PRIORITY_ALIASES, EQUAL_PRIORITY]
        made.mistakes.append(_unknown("Priority", priority.name, sorted(known), (*steps, "name")))


def _weigh(made: Named, name: str, priority: Priority, steps: Steps) -> None:
    """Gives a priority its weight. One that is named twice keeps the last."""
    if name in made.priorities and name not in INTERNAL:
        said = f"{name} is named twice: the last weight counts, {priority.weight}"
        made.warnings.append(mistake(said, steps))
    made.priorities[name] = priority.weight, steps


def _priority_argument(made: Named, argument: PriorityArgument, at: Steps) -> None:
    """Adds what an argument says."""
    match argument:
        case ServiceAntiAffinity(label):
            made.configured.add(SERVICE_AFFINITY)
            made.labels.anti_affinity.append((label, (*at, "serviceAntiAffinity", "label")))
        case LabelPreference(label, presence):
            made.configured.add(NODE_LABEL)
            into = made.labels.preferred if presence else made.labels.avoided
            into.append((label, (*at, "labelPreference", "label")))
        case CapacityRatio():
            made.configured.add(CAPACITY_RATIO)
            made.ratio = argument, (*at, "requestedToCapacityRatioArguments")


def predicate_meant(predicate: Predicate) -> str:
    """The name that kube-scheduler gives a valid entry."""
    name = PREDICATE_ALIASES.get(predicate.name, predicate.name)
    if name in PREDICATES or not predicate.arguments:
        return name
    return SERVICE_AFFINITY_PREDICATE if isinstance(predicate.arguments[0], ServiceAffinity) else LABELS_PREDICATE


def priority_meant(priority: Priority) -> str:
    """The name that kube-scheduler gives a valid entry."""
    name = PRIORITY_ALIASES.get(priority.name, priority.name)
    if name in PRIORITIES or not priority.arguments:
        return name
    match priority.arguments[0]:
        case ServiceAntiAffinity():
            return SERVICE_AFFINITY
        case LabelPreference():
            return NODE_LABEL
        case CapacityRatio():
            return CAPACITY_RATIO


def _unknown(kind: str, name: str, known: Iterable[str], steps: Steps) -> Mistake:
    near = nearest(name, known)
    hint = f"did you mean `{near}`?" if near else ""
    if name in HISTORICAL:
        hint = (
            f"kube-scheduler {HISTORICAL[name]} was the last to have it; a policy that imports the shipped "
            "`historical.ksp` has it too"
        )
    return mistake(f"Invalid configuration: {kind} type not found for {quoted(name)}", steps, hint)


def _unread(name: str, kind: str, steps: Steps) -> Mistake:
    said = f"the argument counts for nothing, since {name} is the name of a {kind} of kube-scheduler"
    return mistake(said, (*steps, "argument"), "give it a name of its own")


def _without_labels(made: Named) -> None:
    """Rules for labels without labels. Predicates deny nothing; of priorities kube-scheduler 1.19 crashes."""
    labels = made.labels
    for name, said in (
        (LABELS_PREDICATE, labels.present + labels.absent),
        (SERVICE_AFFINITY_PREDICATE, labels.affinity),
    ):
        if name in made.predicates and not said:
            made.warnings.append(mistake(f"{name} without labels denies nothing", made.predicates[name]))
    for name, said in ((NODE_LABEL, labels.preferred + labels.avoided), (SERVICE_AFFINITY, labels.anti_affinity)):
        if name in made.priorities and not said:
            field = "labelPreference" if name == NODE_LABEL else "serviceAntiAffinity"
            message = f"priority {quoted(name)} has no label, of which kube-scheduler 1.19 crashes"
            hint = f"give it a name of its own, and an argument `{field}`"
            made.mistakes.append(mistake(message, (*made.priorities[name][1], "name"), hint))
