from __future__ import annotations

import json
from dataclasses import fields

import pytest
from tests.unit.sim.bench.measured import conditions, figures, runs

from ksp.sim.bench.figures import Conditions, Figures, Run
from ksp.sim.bench.records import Record, RecordError, record_of, text_of
from ksp.sim.bench.rule_times import RuleTimes


def test_a_record_comes_back() -> None:
    record = Record(
        [*runs(1.5, 2.5), Run(conditions("Unschedulable", provider="P", columns=False), figures(5.0))],
        {"ksp": "1"},
        {"processors": 2},
        {1: [RuleTimes("Room", "predicate", prepared=2, evaluations=8, denied=2, judging_seconds=0.5)]},
    )
    assert record_of(text_of(record)) == record


def test_what_stands_in_it() -> None:
    times = RuleTimes("Room", "predicate", prepared=2, evaluations=8, denied=2, judging_seconds=0.5)
    value = json.loads(text_of(Record(runs(10.0, 20.0, 30.0), {"ksp": "1"}, {}, {1: [times]})))
    assert set(value) == {"benchmark", "versions", "machine", "runs", "medians"}
    names = {each.name for each in (*fields(Conditions), *fields(Figures))}
    assert [set(run) - names for run in value["runs"]] == [set(), {"rules"}, set()]
    assert all(names <= set(run) for run in value["runs"])
    assert {"workload", "nodes", "pods", "decisions_per_second", "p50_ms", "p90_ms", "p99_ms", "hit_rate"} <= names
    (median,) = value["medians"]
    assert (median["runs"], median["decisions_per_second"], median["workload"]) == (3, 20.0, "SchedulingBasic")
    assert median["spread"]["decisions_per_second"] == [10.0, 30.0]
    (rule,) = value["runs"][1]["rules"]
    assert (rule["name"], rule["evaluations"], rule["selectivity"]) == ("Room", 8, 0.25)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not valid JSON"),
        ('{"benchmark": "core", "runs": [', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"benchmark": "core", "runs": [{"p50_ms": NaN}]}', "not valid JSON: NaN is no number"),
        ("[]", "not a record"),
        ("{}", "not a record"),
        ('{"benchmark": "core"}', "not a record"),
        ('{"benchmark": "core", "runs": []}', "there are no runs in it"),
        ('{"benchmark": "core", "runs": [7]}', "run 1: Expected `object`"),
        ('{"benchmark": "core", "runs": [{"workload": "A", "nodes": "many"}]}', "run 1: Expected `int`, got `str`"),
        ('{"benchmark": "core", "runs": [{"workload": "A", "nodes": 1}]}', "missing required field `pods`"),
    ],
)
def test_what_is_no_record(text: str, said: str) -> None:
    with pytest.raises(RecordError) as error:
        record_of(text)
    assert said in str(error.value)


def test_a_record_of_which_a_run_lacks_something() -> None:
    value = json.loads(text_of(Record(runs(1.0, 2.0))))
    del value["runs"][1]["p50_ms"]
    with pytest.raises(RecordError) as error:
        record_of(json.dumps(value))
    assert str(error.value) == "run 2: Object missing required field `p50_ms`"


def test_a_record_of_which_a_rule_lacks_something() -> None:
    value = json.loads(text_of(Record(runs(1.0), rules={0: [RuleTimes("Room", "predicate")]})))
    del value["runs"][0]["rules"][0]["kind"]
    with pytest.raises(RecordError) as error:
        record_of(json.dumps(value))
    assert str(error.value) == "run 1: rules: Object missing required field `kind` - at `$[0]`"


def test_what_another_version_adds_is_left_out() -> None:
    value = json.loads(text_of(Record(runs(1.0))))
    value["runs"][0]["new"] = value["new"] = {}
    assert list(record_of(json.dumps(value)).runs) == runs(1.0)
