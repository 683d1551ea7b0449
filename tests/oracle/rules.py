"""What statements mean: predicates, priorities and their normalization, one node at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.oracle.interpret import Cluster, Names, World, divided, entries, evaluate, wrapped

from ksp.check.typed import Binding, Collect, Deny, Fail, For, Let, Rule, Statement, Stop
from ksp.compile.zeros import zero_of
from ksp.model.info import NodeInfo, PodInfo

Denied = tuple[Literal["deny"], bool, tuple[str, ...]]
Failed = tuple[Literal["fail"], str]
Stopped = tuple[Literal["stop"]]
Ending = Denied | Failed | Stopped

STOPPED: Stopped = ("stop",)


@dataclass
class Collected:
    """What the `deny`s of a `collect` block have reported."""

    unresolvable: bool = False
    reasons: list[str] = field(default_factory=list)


def prefilter(rule: Rule, pod: PodInfo, cluster: Cluster, params: Mapping[str, Any]) -> Ending | None:
    """What `prefilter` or `prescore` decide for all nodes."""
    return _run(rule.before, _arguments(rule, params), World(pod=pod, cluster=cluster), None)


def judge(
    rule: Rule, pod: PodInfo, node: NodeInfo, cluster: Cluster, params: Mapping[str, Any]
) -> Denied | Failed | None:
    """What a predicate says of one node; None if it admits it."""
    ending = prefilter(rule, pod, cluster, params)
    if ending is None:
        ending = _run(rule.body, _arguments(rule, params), World(pod=pod, node=node, cluster=cluster), None)
    return None if ending is None or ending[0] == "stop" else ending


def raw_scores(
    rule: Rule, pod: PodInfo, feasible: Sequence[NodeInfo], cluster: Cluster, params: Mapping[str, Any]
) -> list[int] | Failed:
    """The first step of a priority, without what `prescore` says."""
    assert rule.score is not None
    names = _arguments(rule, params)
    result = []
    for node in feasible:
        world = World(pod, node, cluster, feasible)
        ending = _run(rule.body, names, world, None)
        if ending is not None and ending[0] == "fail":
            return ending
        result.append(evaluate(rule.score, names, world))
    return result


def normalized(
    rule: Rule,
    pod: PodInfo,
    feasible: Sequence[NodeInfo],
    cluster: Cluster,
    params: Mapping[str, Any],
    raw: Sequence[int],
) -> list[int]:
    """The second step of a priority, of what the first gave."""
    if rule.normalize is None:
        return list(raw)
    if rule.normalize.form != "block":
        most = max([0, *raw])
        shares = [divided(wrapped(100 * score), most) if most else 0 for score in raw]
        return [wrapped(100 - share) for share in shares] if rule.normalize.form == "reversed" else shares
    assert rule.normalize.score is not None
    scores = {node.name: score for node, score in zip(feasible, raw, strict=True)}
    world = World(pod, cluster=cluster, feasible=feasible, scores=scores)
    names = _arguments(rule, params)
    return [evaluate(rule.normalize.score, names, replace(world, node=node)) for node in feasible]


def scores(
    rule: Rule, pod: PodInfo, feasible: Sequence[NodeInfo], cluster: Cluster, params: Mapping[str, Any]
) -> list[int] | Failed:
    """What a priority gives in the end."""
    ending = prefilter(rule, pod, cluster, params)
    if ending is not None and ending[0] == "fail":
        return ending
    raw = raw_scores(rule, pod, feasible, cluster, params)
    return normalized(rule, pod, feasible, cluster, params, raw) if isinstance(raw, list) else raw


def _arguments(rule: Rule, params: Mapping[str, Any]) -> Names:
    names: dict[Binding, Any] = {}
    for parameter in rule.parameters:
        binding = parameter.binding
        if binding.name in params:
            names[binding] = params[binding.name]
        elif parameter.default is None:
            names[binding] = zero_of(binding.type)
        else:
            names[binding] = evaluate(parameter.default, {}, World())
    return names


def _run(statements: Sequence[Statement], names: Names, world: World, collected: Collected | None) -> Ending | None:
    """The statements in order, up to the one that ends the rule."""
    for statement in statements:
        ending = _statement(statement, names, world, collected)
        if ending is not None:
            return ending
    return None


def _statement(statement: Statement, names: Names, world: World, collected: Collected | None) -> Ending | None:
    match statement:
        case Let():
            return None  # a name is computed where it is read
        case Fail(message=message, condition=condition):
            return ("fail", evaluate(message, names, world)) if evaluate(condition, names, world) else None
        case Stop(condition=condition):
            return STOPPED if evaluate(condition, names, world) else None
        case For(variables=variables, range=range_, body=body):
            rounds = entries(variables, evaluate(range_, names, world), names)
            endings = (_run(body, inner, world, collected) for inner in rounds)
            return next((ending for ending in endings if ending is not None), None)
        case Collect(body=body):
            return _collect(body, names, world)
        case Deny(unresolvable=unresolvable, reasons=reasons, condition=condition):
            if not evaluate(condition, names, world):
                return None
            texts = tuple(evaluate(reason, names, world) for reason in reasons)
            if collected is None:
                return "deny", unresolvable, texts
            collected.reasons.extend(texts)
            collected.unresolvable |= unresolvable
            return None


def _collect(body: Sequence[Statement], names: Names, world: World) -> Ending | None:
    """What was reported counts even if `stop` ends the block."""
    collected = Collected()
    ending = _run(body, names, world, collected)
    if collected.reasons and (ending is None or ending[0] == "stop"):
        return "deny", collected.unresolvable, tuple(collected.reasons)
    return ending
