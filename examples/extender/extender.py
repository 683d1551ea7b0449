"""An extender that hands out licences. A pod names the one that it needs, a node those that it has:

    metadata: {annotations: {example.com/licence: cad}}           a pod
    metadata: {annotations: {example.com/licences: "cad,video"}}  a node

It keeps pods away from nodes that lack their licence, and nodes with many licences free for those who need them.
Annotations are nothing that a policy's rules read: an extender sees all that the API server holds.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

Json = dict[str, Any]


def annotation(thing: Json, name: str) -> str:
    return str((thing["metadata"].get("annotations") or {}).get(f"example.com/{name}", ""))


def licences(node: Json) -> set[str]:
    return set(filter(None, annotation(node, "licences").split(",")))


async def filter_nodes(request: web.Request) -> web.Response:
    args: Json = await request.json()
    wanted, nodes = annotation(args["Pod"], "licence"), args["Nodes"]["items"]
    fitting = [node for node in nodes if not wanted or wanted in licences(node)]
    failed = {node["metadata"]["name"]: f"no licence for {wanted}" for node in nodes if node not in fitting}
    return web.json_response({"Nodes": {"items": fitting}, "FailedNodes": failed})


async def prioritize_nodes(request: web.Request) -> web.Response:
    args: Json = await request.json()
    scores = {node["metadata"]["name"]: max(0, 10 - len(licences(node))) for node in args["Nodes"]["items"]}
    return web.json_response([{"Host": name, "Score": score} for name, score in scores.items()])


def application() -> web.Application:
    made = web.Application(client_max_size=2**30)  # all nodes are in a question
    made.add_routes([web.post("/licences/filter", filter_nodes), web.post("/licences/prioritize", prioritize_nodes)])
    return made


if __name__ == "__main__":
    web.run_app(application(), host="127.0.0.1", port=8888)
