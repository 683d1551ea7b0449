"""Extension points that are no rule's: what can be said of them, and what it means here."""

from __future__ import annotations

import pytest
from tests.unit.policy.configuration.configurations import VERSIONS, errors, profile, read, resolve, warnings

AT = "4: profiles[0].plugins."
PORTS = "{name: NodePorts}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "{queueSort: {enabled: [{name: Mine}], disabled: [{name: '*'}]}}",
            ['queueSort.enabled[0]: QueueSortPlugin "Mine" does not exist; there is `PrioritySort`'],
        ),
        (
            "{queueSort: {disabled: [{name: '*'}]}}",
            ['queueSort: no queue sort plugin for profile with scheduler name "default-scheduler"'],
        ),
        (
            "{queueSort: {enabled: [{name: NodeName}]}}",
            [
                'queueSort.enabled[0]: plugin "NodeName" does not extend QueueSortPlugin plugin',
                "queueSort: only one queue sort plugin can be enabled",
            ],
        ),
        (
            "{bind: {disabled: [{name: DefaultBinder}]}}",
            ['bind: at least one bind plugin is needed for profile with scheduler name "default-scheduler"'],
        ),
        (
            "{bind: {enabled: [{name: DefaultBindr}]}}",
            ['bind.enabled[0]: BindPlugin "DefaultBindr" does not exist; did you mean `DefaultBinder`?'],
        ),
        ("{permit: {enabled: [{name: Coscheduling}]}}", [(
            'permit.enabled[0]: PermitPlugin '
            '"Coscheduling" does not exist; there is none'
        )]),
        ("{postFilter: {enabled: [{name: Own}]}}", [(
            'postFilter.enabled[0]: PostFilterPlugin "Own" '
            'does not exist; there is `DefaultPreemption`'
        )]),
        ("{reserve: {enabled: [{name: NodePorts}]}}", [(
            'reserve.enabled[0]: plugin "NodePorts" '
            'does not extend ReservePlugin plugin'
        )]),
    ],
)  # fmt: skip
def test_only_kube_schedulers_own_plugins_take_part_there(said: str, expected: list[str], version: str) -> None:
    found = sorted(errors(lambda: read(profile(said), version)))
    assert found == sorted(AT + each for each in expected)


def test_profiles_share_one_queue() -> None:
    first = "{schedulerName: a}"
    second = "{schedulerName: b, plugins: {queueSort: {disabled: [{name: PrioritySort}]}}}"
    assert errors(lambda: read(f"profiles: [{first}, {second}]")) == [
        '3: profiles[1].plugins.queueSort: no queue sort plugin for profile with scheduler name "b"',
        "3: profiles[1].plugins.queueSort: Invalid value: []: must be the same for all profiles",
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_preemption_is_on_or_off(version: str) -> None:
    off = profile("{postFilter: {disabled: [{name: DefaultPreemption}]}}")
    assert [resolve(body, version).profiles[0].preempts for body in ("", off)] == [True, False]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "{preBind: {disabled: [{name: VolumeBinding}]}}",
            ["preBind: VolumeBinding is off, and claims are bound nevertheless: it filters"],
        ),
        (
            "{reserve: {disabled: [{name: '*'}]}}",
            ["reserve: VolumeBinding is off, and claims are bound nevertheless: it filters"],
        ),
        (
            "{preFilter: {disabled: [{name: InterPodAffinity}]}}",
            ["preFilter: InterPodAffinity is off, and its rule is asked as a whole: it is on at filter"],
        ),
        ("{filter: {disabled: [{name: InterPodAffinity}]}}", []),
        ("{preScore: {disabled: [{name: '*'}]}, score: {disabled: [{name: '*'}]}}", []),
        (
            f"{{filter: {{disabled: [{PORTS}]}}, preFilter: {{disabled: [{PORTS}], enabled: [{PORTS}]}}}}",
            ['preFilter.enabled[0]: "NodePorts" has no effect: it is off at filter'],
        ),
        ("{score: {disabled: [{name: NodeNam}]}}", [(
            'score.disabled[0]: has no effect: '
            '"NodeNam" is not on by default'
        )]),
        ("{permit: {enabled: [{name: GangScheduling}]}}", [(
            'permit.enabled[0]: no rule implements '
            '"GangScheduling": pods are scheduled one by one'
        )]),
    ],
)  # fmt: skip
def test_what_works_otherwise_here_is_warned_of(said: str, expected: list[str], version: str) -> None:
    assert warnings(read(profile(said), version)) == [AT + each for each in expected]


def test_claims_are_not_bound_where_nothing_filters_by_them() -> None:
    found = warnings(read(profile("{filter: {disabled: [{name: VolumeBinding}]}}")))
    assert f"{AT}preBind: VolumeBinding binds no claims: it does not filter" in found


def test_gates_hold_pods_back_whatever_is_said() -> None:
    found = warnings(read(profile("{preEnqueue: {disabled: [{name: SchedulingGates}]}}")))
    assert found == [f"{AT}preEnqueue: SchedulingGates is off, and pods with scheduling gates are held nevertheless"]


def test_pods_are_not_scheduled_in_groups() -> None:
    found = warnings(read(profile("{placementScore: {enabled: [{name: Any}]}}")))
    assert found == [f"{AT}placementScore.enabled[0]: has no effect: pods are scheduled one by one"]


@pytest.mark.parametrize("version", ["v1beta3", "v1"])
def test_a_plugin_of_later_releases_is_warned_of(version: str) -> None:
    found = resolve(
        profile("{multiPoint: {enabled: [{name: DynamicResources}]}}", "[{name: DynamicResources}]"), version
    )
    said = 'no rule implements "DynamicResources": pods with resource claims are held by --unread-fields'
    assert f"{AT}multiPoint.enabled[0]: {said}" in warnings(found.effective) + warnings(found)
    assert "DynamicResources" not in found.plugins[0].filters
