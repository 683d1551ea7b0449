"""A legacy Policy converted: the text of a policy that decides the same, a file for the extenders, and what became of
every part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ksp.check.program import Module
from ksp.check.providers import CHECK_ALL
from ksp.policy.extender import Extender
from ksp.policy.extender_fields import extender_of
from ksp.policy.field_errors import Steps, pointer
from ksp.policy.legacy.mistakes import LegacyPolicyError, Mistake
from ksp.policy.legacy.model import (
    CapacityRatio,
    LabelPreference,
    LabelsPresence,
    LegacyPolicy,
    PredicateArgument,
    PriorityArgument,
    ServiceAffinity,
    ServiceAntiAffinity,
)
from ksp.policy.legacy.names import EQUAL_PRIORITY, INTER_POD_AFFINITY, PREDICATES, PRIORITIES, RESOURCES_FIT
from ksp.policy.legacy.naming import Named, named, predicate_meant, priority_meant
from ksp.policy.legacy.policy import DEFAULT_SCHEDULER, configuration
from ksp.policy.legacy.translation import Configured
from ksp.policy.legacy.writing import Parts, extender_file, literal, parts_of, unsayable, written
from ksp.policy.plugins import PluginSet, rules_by_plugin


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one part of a Policy. `kind` is predicate, priority, setting or extender; `pointer` is "" for what
    the Policy does not say itself; `becomes` are rules or settings in the policy, () for what is left out."""

    kind: str
    pointer: str
    said: str
    becomes: tuple[str, ...]
    plugins: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The text of the policy, that of the extenders' file ("" without extenders), what became of what, and what has no
    effect. `plugins` is what the text has to decide like, for the pods of `scheduler_name`; `asked` are the extenders
    that the file has to name."""

    text: str
    extenders: str
    rows: tuple[Row, ...]
    warnings: tuple[Mistake, ...]
    plugins: PluginSet
    asked: tuple[Extender, ...] = ()
    scheduler_name: str = DEFAULT_SCHEDULER


def converted(
    policy: LegacyPolicy, rules: Module, scheduler_name: str = DEFAULT_SCHEDULER, *, preempts: bool = False
) -> Conversion:
    """Converts a Policy, with the rules of a module and its imports. Raises LegacyPolicyError: also for what
    kube-scheduler takes and a policy of ksp cannot say."""
    configured = configuration(policy, scheduler_name)
    plugins = replace(configured.plugins, preempts=preempts)
    names = named(policy)
    if mistakes := tuple(unsayable(names, plugins)):
        raise LegacyPolicyError(policy.name, mistakes)
    every = [*rules.own_rules(), *rules.rules().values()]
    parts = parts_of(plugins, every)
    return Conversion(
        written(parts, plugins, scheduler_name, policy.name),
        extender_file(configured.extenders, policy.name) if configured.extenders else "",
        tuple(_Rows(policy, names, configured, parts).all()),
        configured.warnings,
        plugins,
        configured.extenders,
        scheduler_name,
    )


class _Rows:
    """What became of every part of a Policy."""

    def __init__(self, policy: LegacyPolicy, names: Named, configured: Configured, parts: Parts) -> None:
        self.policy = policy
        self.names = names
        self.configured = configured
        self.parts = parts
        self.filters = rules_by_plugin(parts.predicates, "predicate")
        self.scores = rules_by_plugin([rule for rule, _ in parts.priorities], "priority")

    def all(self) -> Iterator[Row]:
        yield from self._predicates()
        yield from self._priorities()
        yield from self._settings()
        yield from self._extenders()

    def _predicates(self) -> Iterator[Row]:
        said = set()
        for i, predicate in enumerate(self.policy.predicates or ()):
            name = predicate_meant(predicate)
            said.add(name)
            note = "" if name == predicate.name else f"it is {name}"
            read = predicate.arguments if predicate.name not in PREDICATES else None
            yield self._predicate(name, ("predicates", i), predicate.name, _together(note, read))
        why = "default" if self.policy.predicates is None else "always there"
        for name in PREDICATES:
            if name in self.names.predicates and name not in said:
                yield self._predicate(name, (), name, why)

    def _predicate(self, name: str, steps: Steps, said: str, note: str) -> Row:
        plugins = PREDICATES[name]["filter"]
        return Row("predicate", pointer(steps), said, tuple(self.filters[p].name for p in plugins), plugins, note)

    def _priorities(self) -> Iterator[Row]:
        for i, priority in enumerate(self.policy.priorities or ()):
            steps: Steps = ("priorities", i)
            if priority.name == EQUAL_PRIORITY:
                yield Row("priority", pointer(steps), priority.name, (), (), "prefers nothing, left out")
                continue
            name = priority_meant(priority)
            note = "" if name == priority.name else f"it is {name}"
            read = priority.arguments if priority.name not in PRIORITIES else None
            yield self._priority(name, steps, priority.name, _together(note, read))
        if self.policy.priorities is None:
            for name in self.names.priorities:
                yield self._priority(name, (), name, "default")

    def _priority(self, name: str, steps: Steps, said: str, note: str) -> Row:
        plugin = PRIORITIES[name]
        rule = self.scores[plugin]
        weight = next(weight for each, weight in self.parts.priorities if each is rule)
        return Row("priority", pointer(steps), said, (f"{rule.name}: {weight}",), (plugin,), note)

    def _settings(self) -> Iterator[Row]:
        if self.policy.hard_weight:
            name = "hardPodAffinitySymmetricWeight"
            becomes = self._of_plugin(INTER_POD_AFFINITY)
            said = f"{name}: {self.policy.hard_weight}"
            note = "" if becomes else "no effect without InterPodAffinityPriority"
            yield Row("setting", pointer((name,)), said, becomes, (INTER_POD_AFFINITY,), note)
        if self.policy.checks_all:
            yield Row("setting", pointer((CHECK_ALL,)), f"{CHECK_ALL}: true", (f"{CHECK_ALL} = true",))

    def _extenders(self) -> Iterator[Row]:
        extenders = [extender_of(each) for each in self.policy.extenders]
        order = sorted(range(len(extenders)), key=lambda i: extenders[i].ignorable)
        for i, extender in enumerate(extenders):
            ignored = bool(extender.ignored_resources)
            becomes = (f"extenders[{order.index(i)}]", *(self._of_plugin(RESOURCES_FIT) if ignored else ()))
            yield Row("extender", pointer(("extenders", i)), extender.url_prefix, becomes, (), "in a file of its own")

    def _of_plugin(self, plugin: str) -> tuple[str, ...]:
        """The settings that have a plugin's arguments."""
        names = {rule.name for rule in (*self.filters.values(), *self.scores.values()) if rule.plugin == plugin}
        return tuple(str(setting) for setting in self.parts.settings if setting.rule in names)


def _together(note: str, arguments: Sequence[PredicateArgument | PriorityArgument] | None) -> str:
    """A note, and what arguments add to settings."""
    return ", ".join((*([note] if note else []), *map(_shown, arguments or ())))


def _shown(argument: PredicateArgument | PriorityArgument) -> str:
    match argument:
        case ServiceAffinity(labels):
            return f"affinityLabels {_list(labels)}"
        case LabelsPresence(labels, presence):
            return f"{'presentLabels' if presence else 'absentLabels'} {_list(labels)}"
        case ServiceAntiAffinity(label):
            return f"antiAffinityLabelsPreference {_list([label])}"
        case LabelPreference(label, presence):
            return f"{'presentLabelsPreference' if presence else 'absentLabelsPreference'} {_list([label])}"
        case CapacityRatio(shape, resources):
            return f"shape of {len(shape)} points, resources {_list(name for name, _ in resources)}"


def _list(labels: Iterable[str]) -> str:
    return literal(list(labels))
