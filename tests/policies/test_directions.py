"""Which events help a pod that a shipped rule denied: the table of the design, and where it is another.

A new node can always help, so it is left out. `Objects` are all events of other objects that the rule reads.
"""

from __future__ import annotations

from typing import Final

import pytest
from tests.policies.test_forms import shipped_rules

from ksp.check.typed import Rule
from ksp.compile.events import NODE_ADD, OBJECT_EVENTS, shown
from ksp.compile.footprint import footprint_of

OBJECTS: Final = {f"{kind}{verb}" for kind in OBJECT_EVENTS.values() for verb in ("Add", "Update", "Delete")}

# Pods that leave, or come: of a sum, all that asks for something; of rows, those that a view counts.
LEAVES, COMES = "AssignedPodDelete", "AssignedPodAdd"

# The comments say where the design says less, and why both may help.
HELPS: Final[dict[str, set[str]]] = {
    "CheckNodeUnschedulable": {"NodeTaint(less)"},
    "PodFitsResources": {LEAVES, "AssignedPodRequests(less)", "NodeAllocatable(more)"},
    "HostName": set(),
    "PodFitsHostPorts": {"AssignedPodPorts(less)"},
    "MatchNodeSelector": {"NodeLabel"},
    # a spec that changes can drop a disk or a claim; a claim made anew may be for several pods
    "NoDiskConflict": {LEAVES, "AssignedPodSpec", "Objects"},
    "PodToleratesNodeTaints": {"NodeTaint(less)"},
    # a disk of the pod that another brings to the node is one less to attach: more of the view lowers one part of the
    # sum and raises the other, that their sum never falls is not seen; and a limit that comes may be lower
    "MaxEBSVolumeCount": {LEAVES, COMES, "AssignedPodSpec", "NodeAllocatable", "NodeLabel", "Objects"},
    "MaxGCEPDVolumeCount": {LEAVES, COMES, "AssignedPodSpec", "NodeAllocatable", "Objects"},
    "MaxAzureDiskVolumeCount": {LEAVES, COMES, "AssignedPodSpec", "NodeAllocatable", "Objects"},
    "MaxCinderVolumeCount": {LEAVES, COMES, "AssignedPodSpec", "NodeAllocatable", "Objects"},
    # here a pod that brings all that is missing does help: nothing is left to attach
    "MaxCSIVolumeCountPred": {LEAVES, COMES, "AssignedPodSpec", "NodeAllocatable", "Objects"},
    "CheckVolumeBinding": {"NodeLabel", "Objects"},
    "NoVolumeZoneConflict": {"NodeLabel", "Objects"},
    # a node that goes may have been the emptiest domain; owners count through their selectors
    "EvenPodsSpread": {
        LEAVES, COMES, "AssignedPodLabels", "AssignedPodTerminating", "NodeDelete", "NodeLabel", "Objects",
    },
    # near must not be 0, unless it is 0 everywhere: both
    "MatchInterPodAffinity": {LEAVES, COMES, "AssignedPodLabels", "AssignedPodSpec", "NodeLabel"},
    "CheckNodeLabelPresence": {"NodeLabel"},
    # another node may come first when one goes
    "CheckServiceAffinity": {LEAVES, COMES, "AssignedPodLabels", "NodeDelete", "NodeLabel", "Objects"},
    "CheckNodeCondition": {"NodeTaint(less)", "NodeUpdate"},
    "CheckNodeMemoryPressure": {"NodeUpdate"},
    "CheckNodeDiskPressure": {"NodeUpdate"},
    "CheckNodePIDPressure": {"NodeUpdate"},
}  # fmt: skip


def predicates() -> list[Rule]:
    rules = {rule.name: rule for rule in shipped_rules() if not rule.span.source.name.endswith(".test.ksp")}
    return [rule for rule in rules.values() if rule.kind == "predicate"]


@pytest.mark.parametrize("rule", predicates(), ids=lambda rule: rule.name)
def test_what_helps(rule: Rule) -> None:
    events = footprint_of(rule).events
    assert NODE_ADD in events
    found = {*shown(events - {NODE_ADD} - OBJECTS)} | ({"Objects"} if events & OBJECTS else set())
    assert found == HELPS[rule.name]


def test_the_table_has_all_rules_and_no_others() -> None:
    assert HELPS.keys() == {rule.name for rule in predicates()}
