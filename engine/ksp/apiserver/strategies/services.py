"""Services: addresses and ports are given out at create. And Endpoints."""

from typing import ClassVar, Final

from ksp.apiserver.status import Cause, invalid, invalid_value, required
from ksp.apiserver.strategies.base import Defaults, Kind
from ksp.apiserver.strategies.defaults import fill
from ksp.apiserver.strategy import Context, Json
from ksp.apiserver.validation import names
from ksp.apiserver.validation.metadata import immutable, one_of, validate_labels
from ksp.apiserver.validation.pods import PROTOCOLS

NETWORK: Final = (10, 0)
"""The first two bytes of all cluster addresses."""
NODE_PORTS: Final = range(30_000, 32_768)

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


class Services(Kind):
    """core/v1."""

    core = True
    name_check = staticmethod(names.dns_1035)
    spec_defaults: ClassVar[Defaults] = {"sessionAffinity": "None", "type": "ClusterIP"}
    initial_status: ClassVar[Json | None] = {"loadBalancer": {}}

    def answers_deleted(self, context: Context) -> bool:
        return context.version.dual_stack

    def update_checks_uid(self, context: Context) -> bool:
        return context.version.gone_update_is_404

    def default_more(self, obj: Json, context: Context) -> None:
        spec = obj["spec"]
        if spec["sessionAffinity"] == "ClientIP":
            fill(spec, {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10_800}}})
        if spec["type"] in {"NodePort", "LoadBalancer"}:
            fill(spec, {"externalTrafficPolicy": "Cluster"})
        if spec["type"] == "LoadBalancer" and context.version.dual_stack:
            fill(spec, {"allocateLoadBalancerNodePorts": True})
        if spec["type"] != "ExternalName" and context.version.dual_stack:
            fill(spec, {"internalTrafficPolicy": "Cluster"})
        for port in spec.get("ports") or ():
            fill(port, {"protocol": "TCP"})
            if port.get("targetPort") in {None, 0, ""}:
                port["targetPort"] = port["port"]

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        super().prepare_for_create(obj, context)
        spec = obj["spec"]
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            spec["clusterIP"] = _free_address(context)
        if context.version.dual_stack:
            fill(spec, {"clusterIPs": [spec["clusterIP"]], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"})
        if spec["type"] in {"NodePort", "LoadBalancer"}:
            _give_node_ports(spec.get("ports") or [], context)

    def check(self, obj: Json, context: Context) -> list[Cause]:
        spec, version = obj["spec"], context.version
        ports = spec.get("ports") or ()
        found: list[Cause] = []
        if not ports and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
            found.append(required("spec.ports"))
        for index, port in enumerate(ports):
            place = f"spec.ports[{index}]"
            if len(ports) > 1 and not port.get("name"):
                found.append(required(f"{place}.name"))
            if not 1 <= port["port"] <= 65_535:
                text = "must be between 1 and 65535, inclusive"
                found.append(invalid_value(f"{place}.port", str(port["port"]), text))
            found += one_of(port["protocol"], f"{place}.protocol", PROTOCOLS, version)
        found += validate_labels(spec.get("selector") or {}, "spec.selector", version)
        found += one_of(spec["sessionAffinity"], "spec.sessionAffinity", ("ClientIP", "None"), version)
        return [*found, *one_of(spec["type"], "spec.type", _TYPES, version)]

    def prepare_for_update(self, new: Json, old: Json, context: Context) -> None:
        """What the server gave out stays, also if a client that applies a manifest does not repeat it."""
        super().prepare_for_update(new, old, context)
        if new["spec"]["type"] == "ExternalName":
            return
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"):
            if old["spec"].get(name):
                fill(new["spec"], {name: old["spec"][name]})
        if new["spec"]["type"] in {"NodePort", "LoadBalancer"}:
            _keep_node_ports(new["spec"].get("ports") or [], old["spec"].get("ports") or [])
            _give_node_ports(new["spec"].get("ports") or [], context)

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        if "ExternalName" in {new["spec"]["type"], old["spec"]["type"]}:
            return []
        return immutable(new["spec"].get("clusterIP"), old["spec"].get("clusterIP"), "spec.clusterIP")


def _free_address(context: Context) -> str:
    """Any address of the network that no service has."""
    taken = {each["spec"].get("clusterIP") for each in context.objects.list("services")}
    while True:
        number = int(context.dice.uid().replace("-", ""), 16) % 65_534 + 1
        address = ".".join(str(byte) for byte in (*NETWORK, number // 256, number % 256))
        if address not in taken:
            return address


def _give_node_ports(ports: list[Json], context: Context) -> None:
    taken = {
        port.get("nodePort") for each in context.objects.list("services") for port in each["spec"].get("ports") or ()
    }
    for port in ports:
        if not port.get("nodePort"):
            free = [number for number in NODE_PORTS if number not in taken]
            if not free:
                why = "Internal error: failed to allocate a nodePort: range is full"
                raise invalid("", "Service", context.name, [Cause("InternalError", why, "spec.ports[0].nodePort")])
            port["nodePort"] = free[int(context.dice.uid().replace("-", ""), 16) % len(free)]
        taken.add(port["nodePort"])


def _keep_node_ports(ports: list[Json], before: list[Json]) -> None:
    known = {(port["port"], port["protocol"]): port.get("nodePort") for port in before}
    for port in ports:
        number = known.get((port["port"], port["protocol"]))
        if number:
            fill(port, {"nodePort": number})


class Endpoints(Kind):
    """core/v1, which old leader elections keep their lock in."""

    core = True
    create_on_update = True

    def default_more(self, obj: Json, context: Context) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                fill(port, {"protocol": "TCP"})
