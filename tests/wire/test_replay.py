"""The embedded server answers as the real ones that were recorded, but for what `exclusions.txt` lists."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.wire.agreement import table
from tests.wire.compare import differences
from tests.wire.replay import Replay, replay
from tests.wire.transcript import FILES, REPOSITORY, Exchange, exclusions, steps, values_at

ENOUGH = 0.85
"""The share of all exchanges that has to agree."""

_done: dict[str, Replay] = {}


@pytest.fixture(params=sorted(FILES))
async def run(request: pytest.FixtureRequest, shared: Path) -> Replay:
    """Each transcript is replayed once."""
    version: str = request.param
    if not (shared / "wire").is_dir():
        pytest.skip("there are no transcripts in ../shared")
    if version not in _done:
        _done[version] = await replay(version)
    return _done[version]


def test_what_is_not_excluded_agrees(run: Replay) -> None:
    excluded = exclusions()
    differing = {
        id: result.differences[:3]
        for id, result in run.results.items()
        if result.differences and not any(one.covers(run.version, id) for one in excluded)
    }
    assert differing == {}


def test_enough_of_all_exchanges_agree(run: Replay) -> None:
    assert len(run.agreeing) >= ENOUGH * len(run.results)


def test_each_exclusion_is_needed(run: Replay) -> None:
    idle = [
        one.pattern
        for one in exclusions()
        if one.version in {"", run.version}
        and not any(one.covers(run.version, id) and result.differences for id, result in run.results.items())
    ]
    assert idle == []


def test_each_exclusion_has_a_reason() -> None:
    assert [one.pattern for one in exclusions() if len(one.reason) < 10] == []


@cache
def _recorded() -> dict[str, Any]:
    return {
        "status": 200,
        "headers": {"Content-Type": "application/json"},
        "body": {"metadata": {"uid": "1"}, "a": [1]},
    }


def _exchange(**response: Any) -> Exchange:
    return Exchange(
        id="x.y",
        version="1.36.2",
        auth="admin",
        request={"method": "GET", "path": "/x", "headers": {}, "body": None},
        response={**_recorded(), **response},
        at_ms=0,
        took_ms=1,
        watch=False,
        during=(),
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 201}, "status"),
        ({"headers": {"Content-Type": "text/plain"}}, "Content-Type"),
        ({"body": {"metadata": {"uid": "1"}, "a": [1, 2]}}, "$.a"),
        ({"body": {"metadata": {"uid": "1"}, "a": [True]}}, "$.a[0]"),
        ({"body": {"metadata": {"uid": "2"}, "a": [1]}}, "$.metadata.uid"),
        ({"body": {"metadata": {}, "a": [1]}}, "$.metadata.uid"),
        ({"body": {"metadata": {"uid": "1"}, "a": [1], "b": None}}, "$.b"),
    ],
)
def test_the_comparison_sees(answer: dict[str, Any], said: str) -> None:
    found = differences(_exchange(), {**_recorded(), **answer})
    assert len(found) >= 1
    assert said in found[0]


def test_what_varies_is_not_compared_but_must_be_there() -> None:
    varying = _exchange(normalised=["$.metadata.uid"])
    other = {**_recorded(), "body": {"metadata": {"uid": "2"}, "a": [1]}}
    without = {**_recorded(), "body": {"metadata": {}, "a": [1]}}
    assert differences(varying, other) == []
    assert differences(varying, without) != []


def test_paths_name_places() -> None:
    value = {"items": [{"x": {"y": 1}}, {"x": {"y": 2}}], "a.b": 3}
    assert [found for _, _, found in values_at(value, steps("$.items[*].x.y"))] == [1, 2]
    assert [found for _, _, found in values_at(value, steps('$["a.b"]'))] == [3]


async def test_the_documentation_gives_these_figures(shared: Path) -> None:
    if not (shared / "wire").is_dir():
        pytest.skip("there are no transcripts in ../shared")
    runs = [_done[version] if version in _done else await replay(version) for version in sorted(FILES)]
    text = (REPOSITORY / "docs" / "apiserver.md").read_text(encoding="utf-8")
    assert table(runs) in text, "write the output of `python -m tests.wire.agreement --table` into docs/apiserver.md"
