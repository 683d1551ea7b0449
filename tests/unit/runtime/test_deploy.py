"""`deploy/`: the policy is what `ksp bundle` makes, an API server takes all of it, and its flags and rights, no others,
are enough."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.unit.cli.flags import Started
from tests.unit.runtime.embedded import Said, Server, kubeconfig, node, pod, pod_until, served

from ksp.apiserver import access
from ksp.apiserver.access import Rule
from ksp.apiserver.server import STATIC_USERS
from ksp.cli.main import cli
from ksp.runtime.app import App, running

DEPLOY = Path(__file__).parents[3] / "deploy"
TOKENS = {f"token-of-{name}": user for name, user in STATIC_USERS.items()}
ADMIN = "token-of-admin"
Json = dict[str, Any]


def objects(*names: str) -> list[Json]:
    return [each for name in names for each in yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8"))]


def installed() -> list[Json]:
    (kustomization,) = objects("kustomization.yaml")
    return objects(*kustomization["resources"])


def of_kind(kind: str) -> list[Json]:
    return [each for each in installed() if each["kind"] == kind]


def rules() -> tuple[Rule, ...]:
    """What the service account may, by the roles of its own; those that every cluster has are the server's."""
    found = [
        Rule(
            frozenset(each["verbs"]), frozenset(each["apiGroups"]), frozenset(each["resources"]),
            frozenset(each.get("resourceNames", ())), role["metadata"].get("namespace", ""), role["metadata"]["name"],
        )
        for role in (*of_kind("ClusterRole"), *of_kind("Role"))
        for each in role["rules"]
    ]  # fmt: skip
    return (*found, *(each for each in access.SCHEDULER if each.role == "extension-apiserver-authentication-reader"))


def flags() -> list[str]:
    """Those that the Deployment starts `ksp run` with."""
    (deployment,) = of_kind("Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    command, *found = container["args"]
    assert command == "run"
    return [str(each) for each in found]


def test_everything_is_in_kube_system_and_bound_to_the_one_account() -> None:
    for each in installed():
        cluster_wide = each["kind"] in {"ClusterRole", "ClusterRoleBinding"}
        assert cluster_wide or each["metadata"]["namespace"] == "kube-system", each["kind"]
    known = {(each["kind"], each["metadata"]["name"]) for each in installed()}
    known |= {("ClusterRole", "system:auth-delegator"), ("Role", "extension-apiserver-authentication-reader")}
    account = [{"kind": "ServiceAccount", "name": "ksp", "namespace": "kube-system"}]
    for each in (*of_kind("ClusterRoleBinding"), *of_kind("RoleBinding")):
        assert (each["roleRef"]["kind"], each["roleRef"]["name"]) in known
        assert each["subjects"] == account


def test_the_policy_is_what_bundle_makes_of_its_folder() -> None:
    made = CliRunner().invoke(cli, ["bundle", str(DEPLOY / "policy")], catch_exceptions=False)
    assert made.stdout == (DEPLOY / "policy.yaml").read_text(encoding="utf-8")


def test_the_deployment_runs_as_it_may() -> None:
    (deployment,) = of_kind("Deployment")
    (budget,) = of_kind("PodDisruptionBudget")
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert template["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    assert budget["spec"]["selector"] == deployment["spec"]["selector"]
    assert template["spec"]["serviceAccountName"] == of_kind("ServiceAccount")[0]["metadata"]["name"]
    assert template["spec"]["securityContext"]["runAsNonRoot"]
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = container[name]["httpGet"]
        assert (probe["scheme"], probe["port"]) == ("HTTPS", 10259)
        assert probe["path"] in {"/livez", "/readyz"}


async def test_with_these_flags_and_rights_and_no_others_pods_are_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "SCHEDULER", rules())
    monkeypatch.setattr(access, "NEWER_SCHEDULER", ())
    server = Server(tokens=TOKENS)
    pods = [pod("fits", schedulerName="ksp"), pod("large", cpu="8", schedulerName="ksp")]
    server.load([*installed(), node("n", cpu="2"), *pods])
    async with served(server):
        path = kubeconfig(tmp_path, server, "system:kube-scheduler")
        options = Started([*flags(), f"--kubeconfig={path}", "--secure-port=0"], monkeypatch).options
        with Said() as said:
            async with running(App(options, environ={})) as app:
                bound = await pod_until(server, "fits", lambda found: found["spec"].get("nodeName"), ADMIN)
                waits = await pod_until(server, "large", lambda found: found["status"].get("conditions"), ADMIN)
                assert app.leading.is_set()
    assert bound["spec"]["nodeName"] == "n"
    assert server.state.store.counts()["events"] > 0
    (condition,) = waits["status"]["conditions"]
    assert condition["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert [message for message in said.messages if "403" in message] == []


@pytest.mark.parametrize(
    ("resource", "verb"),
    [("pods", "delete"), ("persistentvolumes", "patch"), ("persistentvolumeclaims", "patch"), ("csinodes", "watch")],
)
def test_what_no_pod_here_needs_is_allowed_too(resource: str, verb: str) -> None:
    assert [each for each in rules() if resource in each.resources and verb in each.verbs]


def test_nothing_else_is_written() -> None:
    writes = {
        (verb, resource) for each in rules() for resource in each.resources
        for verb in each.verbs - {"get", "list", "watch"}
    }  # fmt: skip
    assert writes == {
        ("create", "pods/binding"), ("delete", "pods"), ("patch", "pods/status"), ("create", "events"),
        ("patch", "events"), ("patch", "persistentvolumes"), ("patch", "persistentvolumeclaims"), ("create", "leases"),
        ("update", "leases"),
    }  # fmt: skip


def test_alerts_are_those_of_the_page_and_name_metrics_that_exist() -> None:
    """`up` is Prometheus' own."""
    (rule,) = objects("prometheus-rule.yaml")
    alerts = [each for group in rule["spec"]["groups"] for each in group["rules"]]
    page = (DEPLOY.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    metrics = (DEPLOY.parent / "docs" / "run.md").read_text(encoding="utf-8")
    for each in alerts:
        assert f"`{each['expr']}`" in page, each["alert"]
        (named,) = set(re.findall(r"\b(?:up|(?:ksp|scheduler|leader)_[a-z_]+)\b", each["expr"]))
        assert named == "up" or f"`{named}`" in metrics, named
