"""A week whose discoveries of the cables were cut, failed or empty says so, and is not well if none was whole."""

from __future__ import annotations

import pytest

from assay.fabric.weekly import aggregation
from assay.fabric.weekly.aggregation import aggregate_week
from assay.fabric.weekly.evaluation import WeeklyEvaluation, evaluate_fabric_week
from assay.fabric.weekly.text_report import format_weekly_text, make_week_answer
from assay.fabric.weekly.week_evidence import make_week_evidence, read_week_evidence
from assay.model.facts import to_json
from assay.model.reading import failed, value
from assay.validate.must_fail_recordings import read_check_recording
from tests.support.places import ROOT

WHOLE = read_check_recording(ROOT / "suites" / "recordings", "fabric-compute")
TEXT = WHOLE["channels"]["discovery"]["text"]["value"]
SCANS = 9


def said(text: str, stderr: str = "", number: int = 0) -> dict[str, object]:
    return {"text": value(f"#\n# Topology file: generated on day {number}\n#\n{text}"), "stderr": value(stderr)}


CUT = said(TEXT[: len(TEXT) // 2])
TIMEOUT = said(TEXT, "src/query_smp.c:241; umad (DR path slid 0) bad status 110; Connection timed out\n")
EMPTY = said("")
FAILED = failed("ibnetdiscover: no answer within 60 s")


def evaluate(week, discovery) -> WeeklyEvaluation:
    week.discovery = discovery
    last, cables = week.pass_by(lambda world, number: None, SCANS), list(week.plan.cables)
    kept = read_week_evidence(make_week_evidence(aggregate_week("compute", cables, last, week.store.get, last.at)))
    return evaluate_fabric_week(kept, cables, week.rails, week.design.limits)


@pytest.mark.parametrize("broken", [CUT, TIMEOUT, EMPTY, FAILED], ids=["cut", "timeout", "empty", "failed"])
def test_a_week_without_one_whole_discovery_is_not_well(week, broken):
    one = evaluate(week, lambda number: broken)
    plain = to_json(make_week_answer(one))
    assert (plain["verdict"], plain["unjudged"]) == ("unknown", ["discovery of the cables"])
    assert "not judged: discovery of the cables (" in format_weekly_text(one).partition("\n")[0]
    assert plain["unseen"][0].startswith("discovery of the cables: 9 of 9 were incomplete: ")


def test_some_that_were_not_whole_are_counted_and_the_week_is_well(week):
    broken = {2: CUT, 5: TIMEOUT, 8: FAILED}
    one = evaluate(week, lambda number: broken.get(number) or said(TEXT, number=number))
    assert one.is_whole
    unseen = to_json(make_week_answer(one))["unseen"]
    assert "discovery of the cables: 3 of 9 were incomplete: ibnetdiscover: no answer within 60 s" in unseen


def test_whole_ones_say_nothing_and_the_same_text_is_read_once(week, monkeypatch):
    read = []

    def count(document):
        read.append(document)
        return ()

    monkeypatch.setattr(aggregation, "list_discovery_problems", count)
    one = evaluate(week, lambda number: said(TEXT, number=number))
    assert (one.is_whole, len(read)) == (True, 1)
    assert "discovery" not in format_weekly_text(one)
