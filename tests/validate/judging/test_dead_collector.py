"""Unknown is never a pass: not with a dead collector, and not with any single reading lost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.evidence import EvidenceDocument
from assay.model.outcome import CheckSubject, Outcome
from assay.model.reading import parse_reading
from assay.validate.fixtures.evidence_views import EvidenceView
from assay.validate.judging.evidence_cache import CachedEvidence, EvidenceCache, ReadingUnavailable, UnjudgeableCheck
from assay.validate.judging.verdict import CheckContext, convert_exception, find_pass_objection, find_phase_verdict
from assay.validate.must_fail_recordings import read_check_recording
from tests.support.places import ROOT

pytest_plugins = ["pytester"]

ELSEWHERE = {"fabric", "weekly", "idle"}  # what these judge is no node's evidence
DEAD = {channel: {"failed": "no answer within 5 s"} for channel in ("probe", "bmc", "before", "active")}
WELL = read_check_recording(ROOT / "suites" / "recordings", "hgx-h100")["channels"]


def find_verdicts(outcomes: Iterable[Outcome]) -> set[str]:
    """Return the verdicts. Those of the phase idle are skips: only the schedule of idle verification has readings."""
    idle = {outcome.verdict for outcome in outcomes if "idle" in outcome.phases}
    assert idle == {"skip"}
    return {outcome.verdict for outcome in outcomes if "idle" not in outcome.phases}


def test_nothing_passes_when_every_channel_is_dead(fleet_copy):
    fleet_copy.collected("n0003", channels=DEAD)
    outcomes = fleet_copy.outcomes("--assay-node", "n0003")
    assert len(outcomes) > 200
    assert find_verdicts(outcomes) == {"error"}
    told = {outcome.reason.split(": ", 1)[1] for outcome in outcomes if not ELSEWHERE & {*outcome.phases}}
    assert told == {"failed: no answer within 5 s"}


@pytest.mark.parametrize("kind", ["absent", "unsupported", "failed"])
def test_nothing_passes_when_every_channel_is_silent_in_one_way(fleet_copy, kind):
    fleet_copy.collected("n0003", channels={channel: {kind: "gone"} for channel in DEAD})
    verdicts = {
        outcome.verdict for outcome in fleet_copy.outcomes("--assay-node", "n0003", "--assay-phase", "production")
    }
    assert verdicts == {"skip" if kind == "unsupported" else "error"}


def test_nothing_passes_without_any_channel(fleet_copy):
    fleet_copy.collected("n0003", channels={})
    assert find_verdicts(fleet_copy.outcomes("--assay-node", "n0003")) == {"error"}


def leaves(tree: dict, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if reading := parse_reading(tree):
        return [path] if reading.kind == "value" else []
    return [leaf for key, below in tree.items() for leaf in leaves(below, (*path, key))]


EVERY_LEAF = leaves(WELL)


def is_plain(path: tuple[str, ...]) -> bool:
    """Whether the leaf's value is no mapping: a check reads the entries of a mapping, not the mapping."""
    reading = parse_reading(reduce(getitem, path, WELL))
    return reading is not None and not isinstance(reading.value, dict)


silent = st.one_of(
    st.builds(lambda kind, why: {kind: why}, st.sampled_from(["absent", "unsupported", "failed"]), st.text()),
    st.just({"value": None}),
    st.just({}),
    st.just(None),
    st.just(16),
    st.just("16"),
    st.just([16]),
    st.just({"failed": 5}),
    st.just({"values": 5}),
)


def replaced(tree, path: tuple[str, ...], leaf):
    return {**tree, path[0]: replaced(tree[path[0]], path[1:], leaf)} if path else leaf


def test_a_branch_taken_for_a_value_is_an_error(fleet_copy, verdicts):
    fleet_copy.suite(
        "def test_truth(node):\n    assert node.host\n"
        "def test_likeness(node):\n    assert node.host != 'off'\n"
        "def test_swallowed(node):\n    try:\n        bool(node.host)\n    except Exception:\n        pass\n"
    )
    fleet_copy.collected("n0003")
    said = verdicts(fleet_copy.outcomes("--assay-node", "n0003"))
    assert len(said) == 3
    for reason in said.values():
        assert reason.startswith("error: n0003.probe.host: failed: is a branch of the evidence and no value")


def verdict_of_reading(channels, path: tuple[str, ...], *, swallow: bool) -> str:
    """Judge a check that only reads one path, as the plugin would; `swallow`: it catches whatever is raised."""
    shelf = EvidenceCache(Path("/nowhere"))
    shelf._documents["n1"] = CachedEvidence(EvidenceDocument("n1", datetime.now(UTC), channels), "0" * 64)
    trial = CheckContext("suites/x.py::test_x", CheckSubject("p", "n1"), "n1", shelf)
    error: BaseException | None = None
    try:
        seen = EvidenceView(trial, "n1", ())
        for step in path:
            seen = seen[step]
        assert seen != "no such thing"
    except (ReadingUnavailable, UnjudgeableCheck, TypeError, KeyError) as raised:
        error = None if swallow else raised
    error = convert_exception(error) if error else find_pass_objection(trial)
    return find_phase_verdict(error, "call")


@given(st.sampled_from(EVERY_LEAF), silent, st.booleans())
def test_a_reading_that_is_no_value_never_passes_even_when_the_check_swallows_it(path, leaf, swallow):
    for depth in range(1, len(path) + 1):
        verdict = verdict_of_reading(replaced(WELL, path[:depth], leaf), path, swallow=swallow)
        assert verdict in ("error", "skip")


@given(st.sampled_from([*filter(is_plain, EVERY_LEAF)]))
def test_a_reading_that_is_a_value_is_that_plain_value(path):
    assert verdict_of_reading(WELL, path, swallow=False) == "pass"
