"""Corruption that the battery does not know is seen on each side of each exchange, and accuses no innocent GPU."""

from __future__ import annotations

import random
import re

import pytest

from assay.node.load.catalog import list_tests
from assay.node.load.engine import list_made_devices
from assay.node.load.numpy_engine import NumpyEngine
from assay.node.load.unit_tests import SMALL
from bench import corruption_kinds
from bench.corruption_kinds import BAD, DEVICES, KINDS, SpoilingEngine, judge_visit, measure_visits
from tests.support.places import ROOT

SENT = [
    test for test in list_tests(SMALL, DEVICES) if test.name.startswith(("copy.peer", "copy.source", "collective."))
]
EXCHANGES = ("broadcast", "all_gather", "all_to_all", "all_reduce", "reduce_scatter")
LIMITS = ("NaN becomes 0", "infinity is clamped", "denormals flushed", "-0 becomes 0", "clamped at 1e17")
SEEN = {
    **dict.fromkeys(("broadcast", "all_gather", "all_to_all"), (*LIMITS, "a low bit")),
    **dict.fromkeys(("all_reduce", "reduce_scatter"), ("rounded to 16 bits", "all one place further")),
}
"""By exchange. What is added up are whole numbers, so that it is exact in any order: limits are not among them."""
PUBLISHED = (ROOT / "bench/corruption_kinds.md").read_text()


@pytest.mark.parametrize(("exchange", "kind"), [(name, kind) for name, kinds in SEEN.items() for kind in kinds])
def test_what_a_gpu_sends_wrong_is_seen_in_each_exchange(exchange: str, kind: str) -> None:
    tests = [test for test in SENT if test.name.startswith(("copy.source", f"collective.{exchange}"))]
    chance = random.Random(f"{kind} {exchange}")
    verdict = judge_visit(SpoilingEngine("send", lambda array: KINDS[kind](chance, array)), tests, [0])
    guilty = {place for place in range(DEVICES) if verdict.find_wrong_units(place)}
    assert guilty <= {BAD}
    assert guilty or any(BAD in each.suspects for each in verdict.suspicions)


@pytest.mark.parametrize("side", ["copy", "send", "receive"])
def test_each_kind_is_seen_on_each_side_and_no_innocent_gpu_is_guilty(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corruption_kinds, "VISITS", 1)
    for kind in KINDS:
        share, falsely = measure_visits(kind, side, SENT)
        assert (share.hits, share.trials, falsely) == (1, 1, 0), kind


def test_a_clean_gpu_is_accused_of_nothing() -> None:
    engine = NumpyEngine(list_made_devices(DEVICES, (), (), ""))
    verdict = judge_visit(engine, SENT, [0, 1])
    assert not verdict.suspicions
    assert not any(vote.wrong or vote.suspects or not vote.is_told for vote in verdict.votes)


def test_rates_are_published_for_each_kind_with_their_intervals() -> None:
    rows = {row[0]: row[1:] for line in PUBLISHED.splitlines() if len(row := line.strip("| ").split(" | ")) == 6}
    assert set(KINDS) <= set(rows)
    assert len(KINDS) >= 20
    assert all(re.fullmatch(r"\d+ % \(\d+–\d+\)", cell) for kind in KINDS for cell in rows[kind])
    assert "Innocent GPUs called guilty in 720 visits: 0." in PUBLISHED
    assert "Accused in 1,000 clean runs: 0." in PUBLISHED
