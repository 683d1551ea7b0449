"""Clusters and pods to compare two profiles on: small, full of what rules look at, and the same for the same seed.

A case has the shapes of recorded cases (`ksp.sim.cases`). Every rule that a legacy Policy can name denies nodes, or
tells them apart, in some of a hundred clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

Json = dict[str, Any]

NODES: Final = 7
RUNNING: Final = 14
APPS: Final = ("web", "db", "cache")
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
BOUND: Final = "pv.kubernetes.io/bind-completed"
OWNER: Final = {"kind": "ReplicationController", "name": "rc", "uid": "rc", "controller": True, "apiVersion": "v1"}
LIMITS: Final = ("aws-ebs", "gce-pd", "azure-disk", "cinder", "csi-csi.example.com")
DISKS: Final[Sequence[Json]] = (
    {"gcePersistentDisk": {"pdName": "shared"}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.example", "lun": 1}},
    {"azureDisk": {"diskName": "d", "diskURI": "uri"}},
    {"cinder": {"volumeID": "c"}},
)


OWN_DISKS: Final = (
    ("awsElasticBlockStore", "volumeID"),
    ("gcePersistentDisk", "pdName"),
    ("azureDisk", "diskName"),
    ("cinder", "volumeID"),
)


@dataclass(frozen=True, slots=True)
class Interests:
    """What the profiles that are compared look at beside the usual: labels of nodes, and resources."""

    labels: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


def sample_cases(clusters: int, pods: int, interests: Interests, seed: int) -> Iterator[Json]:
    """So many clusters, with so many pods to be scheduled in each."""
    dice = Random(seed)  # repeatable on purpose, nothing here is secret
    for _ in range(clusters):
        maker = _Maker(dice, interests)
        cluster = maker.cluster()
        for _ in range(pods):
            yield {"cluster": cluster, "pod": maker.pending()}


class _Maker:
    """Makes one cluster, and pods for it."""

    def __init__(self, dice: Random, interests: Interests) -> None:
        self.dice = dice
        self.interests = interests
        self.made = 0

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def cluster(self) -> Json:
        nodes = [self.node(f"n{i}") for i in range(NODES)]
        storage = self.storage()
        return {
            "nodes": nodes,
            "csiNodes": [self.csi_node(node["metadata"]["name"]) for node in nodes if self.chance(0.5)],
            "services": [self.selecting(app) for app in APPS if self.chance(0.6)],
            "replicationControllers": [self.selecting("web")] if self.chance(0.5) else [],
            **storage,
            "pods": [self.running(self.dice.choice(nodes)["metadata"]["name"]) for _ in range(RUNNING)],
        }

    # ---- nodes

    def node(self, name: str) -> Json:
        dice = self.dice
        labels = {HOST: name, ZONE: dice.choice("abc"), "disk": dice.choice(["ssd", "hdd"])}
        if self.chance(0.2):
            del labels[ZONE]
        labels |= {label: dice.choice("xy") for label in self.interests.labels if self.chance(0.5)}
        allocatable: Json = {"cpu": str(dice.randint(1, 8)), "memory": f"{dice.randint(1, 16)}Gi"}
        allocatable |= {"pods": str(dice.choice([4, 10, 110])), "ephemeral-storage": "20Gi"}
        allocatable |= {name: str(dice.randint(1, 8)) for name in self.resources() if self.chance(0.7)}
        allocatable |= {f"attachable-volumes-{kind}": "1" for kind in LIMITS if self.chance(0.5)}
        spec: Json = {"unschedulable": True} if self.chance(0.08) else {}
        if self.chance(0.4):
            effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
            spec["taints"] = [{"key": "for", "value": dice.choice("xy"), "effect": dice.choice(effects)}]
        metadata: Json = {"name": name, "uid": name, "labels": labels}
        if self.chance(0.4):
            avoid = (
                '{"preferAvoidPods":[{"podSignature":{"podController":{"kind":"ReplicationController","uid":"rc"}}}]}'
            )
            metadata["annotations"] = {"scheduler.alpha.kubernetes.io/preferAvoidPods": avoid}
        images = [{"names": [f"{app}:1"], "sizeBytes": dice.randint(1, 9) * 10**8} for app in APPS if self.chance(0.4)]
        return {"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable, "images": images}}

    def resources(self) -> tuple[str, ...]:
        """Those beside cpu and memory that count."""
        return tuple(name for name in ("example.com/gpu", *self.interests.resources) if "/" in name)

    def csi_node(self, name: str) -> Json:
        driver = {"name": "csi.example.com", "nodeID": name, "allocatable": {"count": 1}}
        return {"metadata": {"name": name}, "spec": {"drivers": [driver]}}

    # ---- what pods have to do with

    def selecting(self, app: str) -> Json:
        return {"metadata": {"name": f"of-{app}", "namespace": "default"}, "spec": {"selector": {"app": app}}}

    def storage(self) -> Json:
        later = {"metadata": {"name": "later"}, "provisioner": "csi.example.com"}
        return {
            "storageClasses": [{**later, "volumeBindingMode": "WaitForFirstConsumer"}],
            "persistentVolumes": [self.volume(f"pv{i}", bound=i < 3) for i in range(5)],
            "persistentVolumeClaims": [
                *(self.claim(f"bound{i}", {"volumeName": f"pv{i}"}, {BOUND: "yes"}) for i in range(3)),
                self.claim("waiting", {"storageClassName": "later"}, {}),
                self.claim("unbound", {}, {}),
            ],
        }

    def volume(self, name: str, *, bound: bool) -> Json:
        spec: Json = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
        spec |= {"csi": {"driver": "csi.example.com", "volumeHandle": name}}
        spec |= (
            {"claimRef": {"namespace": "default", "name": f"bound{name[2:]}"}}
            if bound
            else {"storageClassName": "later"}
        )
        if self.chance(0.5):
            term = {
                "matchExpressions": [{"key": "disk", "operator": "In", "values": [self.dice.choice(["ssd", "hdd"])]}]
            }
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        labels = {ZONE: self.dice.choice("abc")} if self.chance(0.5) else {}
        phase = "Bound" if bound else "Available"
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": phase}}

    def claim(self, name: str, spec: Json, annotations: Json) -> Json:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
        return {"metadata": {"name": name, "namespace": "default", "annotations": annotations}, "spec": spec}

    # ---- pods

    def running(self, node: str) -> Json:
        pod = self.pod(light=True)
        pod["spec"]["nodeName"] = node
        pod["status"] = {"phase": "Running"}
        return pod

    def pending(self) -> Json:
        pod = self.pod(light=False)
        spec = pod["spec"]
        if self.chance(0.25):
            selectable = ["disk", *self.interests.labels]
            label = self.dice.choice(selectable)
            spec["nodeSelector"] = {label: self.dice.choice(["ssd", "hdd"] if label == "disk" else "xy")}
        if self.chance(0.04):
            spec["nodeName"] = f"n{self.dice.randrange(NODES)}"
        if self.chance(0.4):
            spec["tolerations"] = [{"key": "for", "operator": "Equal", "value": self.dice.choice("xy")}]
        if self.chance(0.4):
            spec["topologySpreadConstraints"] = [self.constraint(pod["metadata"]["labels"])]
        return pod

    def pod(self, *, light: bool) -> Json:
        self.made += 1
        dice, app = self.dice, self.dice.choice(APPS)
        metadata: Json = {
            "name": f"p{self.made}",
            "uid": f"p{self.made}",
            "namespace": "default",
            "labels": {"app": app},
        }
        if self.chance(0.5):
            metadata["ownerReferences"] = [OWNER]
        container: Json = {
            "name": "c",
            "image": f"{dice.choice(APPS)}:1",
            "resources": {"requests": self.requests(light)},
        }
        if self.chance(0.2):
            container["ports"] = [{"containerPort": 80, "hostPort": dice.choice([80, 81]), "protocol": "TCP"}]
        spec: Json = {"containers": [container], "volumes": self.volumes(light), "affinity": self.affinity()}
        return {"metadata": metadata, "spec": {**spec, "priority": dice.choice([0, 5 if light else 10])}}

    def requests(self, light: bool) -> Json:
        dice = self.dice
        if self.chance(0.15):
            return {}
        requests: Json = {
            "cpu": f"{dice.randint(1, 6 if light else 20) * 100}m",
            "memory": f"{dice.randint(1, 12) * 100}Mi",
        }
        return requests | {name: str(dice.randint(1, 3)) for name in self.resources() if self.chance(0.15)}

    def volumes(self, light: bool) -> list[Json]:
        dice = self.dice
        claims = [f"bound{i}" for i in range(3)] + ([] if light else ["waiting", "unbound"])
        made: list[Json] = []
        if self.chance(0.25):
            made.append({"name": "d", **dice.choice(DISKS)})
        if self.chance(0.5):
            kind, key = dice.choice(OWN_DISKS)
            made.append({"name": "own", kind: {key: f"own-{self.made}"}})
        if self.chance(0.25):
            weights = [6, 6, 6] + ([] if light else [6, 1])
            (claim,) = dice.choices(claims, weights)
            made.append({"name": "v", "persistentVolumeClaim": {"claimName": claim}})
        return made

    def affinity(self) -> Json:
        affinity: Json = {}
        if self.chance(0.15):
            term = {"labelSelector": {"matchLabels": {"app": self.dice.choice(APPS)}}, "topologyKey": ZONE}
            kind = self.dice.choice(["podAffinity", "podAntiAffinity"])
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        if self.chance(0.2):
            term = {"labelSelector": {"matchLabels": {"app": self.dice.choice(APPS)}}, "topologyKey": HOST}
            kind = self.dice.choice(["podAffinity", "podAntiAffinity"])
            weighted = {"weight": self.dice.randint(1, 100), "podAffinityTerm": term}
            affinity.setdefault(kind, {})["preferredDuringSchedulingIgnoredDuringExecution"] = [weighted]
        if self.chance(0.2):
            expression = {"key": "disk", "operator": "In", "values": [self.dice.choice(["ssd", "hdd"])]}
            weighted = {"weight": self.dice.randint(1, 100), "preference": {"matchExpressions": [expression]}}
            affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
        return affinity

    def constraint(self, labels: Json) -> Json:
        key = self.dice.choice([ZONE, HOST])
        when = self.dice.choice(["DoNotSchedule", "ScheduleAnyway"])
        return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": labels}}
