"""kubectl's tables: the columns and cells of a kind. A kind without a printer shows name and time of creation."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from ksp.apiserver.resources import Resource
from ksp.apiserver.strategies import strategy_of
from ksp.apiserver.strategy import Context, Json
from ksp.apiserver.tables.rows import ROWS

_FIELDS: Final = ("name", "type", "format", "priority", "description")
"""Of a column's definition, in the order of the files."""


def table(resource: Resource, objects: Sequence[Json], context: Context) -> tuple[list[Json], list[list[Any]]]:
    """The definitions of the columns, and the cells of each object, which are in the version of the path."""
    columns = _columns(context.version.name)
    row = ROWS.get(resource.storage_id)
    if row is None:
        return _plain_columns(context.version.name), [_plain_cells(obj) for obj in objects]
    strategy = strategy_of(resource)
    cells = [row(strategy.to_storage(obj), context.version, context.now) for obj in objects]
    return columns[resource.storage_id], cells


@cache
def _columns(version: str) -> dict[str, list[Json]]:
    """By storage id."""
    text = files("ksp.apiserver").joinpath(f"data/columns-{version}.json").read_text(encoding="utf-8")
    tables: dict[str, list[list[Any]]] = json.loads(text)
    return {kind: [dict(zip(_FIELDS, row, strict=True)) for row in rows] for kind, rows in tables.items()}


@cache
def _plain_columns(version: str) -> list[Json]:
    """Of `rest.DefaultTableConvertor`, with the descriptions that Name and Age have elsewhere."""
    named = {column["name"]: column for column in _columns(version)["pods"]}
    return [named["Name"], {**named["Age"], "name": "Created At", "type": "date"}]


def _plain_cells(obj: Json) -> list[Any]:
    return [obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")]
