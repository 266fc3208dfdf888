"""The view of a node: its timeline, its measurements, and the sources of its rules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement, Outcome, RecordedOutcome
from assay.tell.pages.node_page import build_timeline
from assay.tell.views.node_measurements import list_series
from assay.tell.views.sources import find_commit_at, is_shown, parse_place, read_spec_lines
from tests.decide.conftest import Paper, catalog, paper, policy, profiles  # noqa: F401 — the policy is the real one
from tests.support.serving_fleet import GIT


@pytest.fixture
def rebooted(paper: Paper) -> Paper:  # noqa: F811
    """A node that left for a reboot an hour ago."""
    for name in ("n1", *(f"f{number}" for number in range(30))):
        paper.add(name, rack=f"r-{name}")
    paper.later(hours=5)
    paper.fault("n1", "gpu.xid.79", "gpu2", detail="fell off")
    paper.step()
    paper.later(hours=1)
    return paper


def outcome(
    value: float, at: str, subject: str = "a/n1/gpu0", node: str = "n1", verdict: str = "pass"
) -> RecordedOutcome:
    measured = Measurement("temperature", value, "Cel", at_most=80.0, source="specs/nodes/a.yaml:3")
    said = Outcome("c.py::test_heat", subject, node, verdict, "hot", evidence_at=at, measurements=(measured,))
    return RecordedOutcome(f"run {at}", at, said)


DAYS = [f"2026-11-2{day}T12:00:00+00:00" for day in range(5)]


def test_a_series_is_of_the_part_that_is_nearest_to_its_limit() -> None:
    ours = [outcome(value, at) for value, at in zip((60.0, 70.0, 85.0), DAYS, strict=False)]
    ours += [outcome(50.0, DAYS[0], "a/n1/gpu1")]
    (series,) = list_series(ours, [outcome(value, DAYS[0], node="n2") for value in (50.0, 56.0, 58.0)])
    assert (series.subject, series.parts, series.is_beyond_limit) == ("a/n1/gpu0", 2, True)
    assert [value for _, value in series.points] == [60.0, 70.0, 85.0]
    assert series.peers is not None
    assert (series.peers.low, series.peers.middle, series.peers.high) == (50.0, 56.0, 58.0)


def test_the_timeline_has_each_entry_once_and_the_newest_first(rebooted: Paper) -> None:
    entries = [entry for entry in rebooted.log.values() if entry.node == "n1"]
    items = build_timeline(entries, last=100)
    assert [item.at for item in items] == sorted((entry.at for entry in entries), reverse=True)
    assert {"fault", "decision", "state"} <= {item.about for item in items}
    assert build_timeline(entries, last=2) == items[:2]


@pytest.mark.parametrize("path", ["specs/../../etc/passwd", "/etc/passwd", "specs//a.yaml", ".git/config", "specs/./a"])
def test_only_declarations_are_shown(path: str, tmp_path: Path) -> None:
    assert not is_shown(path)
    assert read_spec_lines(tmp_path, "0" * 40, path) is None


def test_a_rule_is_shown_as_it_was_at_its_commit(tmp_path: Path) -> None:
    file = tmp_path / "specs" / "a.yaml"
    file.parent.mkdir()
    commits = []
    subprocess.run([*GIT, "init", "--quiet"], cwd=tmp_path, check=True)
    for text in ("one\n", "two\nthree\n"):
        file.write_text(text)
        subprocess.run([*GIT, "add", "--all"], cwd=tmp_path, check=True)
        subprocess.run([*GIT, "commit", "--quiet", "--message", "x"], cwd=tmp_path, check=True)
        head = subprocess.run([*GIT, "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
        commits.append(head.stdout.strip())
    assert [read_spec_lines(tmp_path, commit, "specs/a.yaml") for commit in commits] == [["one"], ["two", "three"]]
    assert read_spec_lines(tmp_path, "HEAD", "specs/a.yaml") is None
    assert read_spec_lines(tmp_path, commits[0], "specs/b.yaml") is None


def test_the_commit_of_a_decision_is_the_one_adopted_before_it() -> None:
    adopted = [
        LedgerEntry(f"e{day}", DAYS[day], "commit.adopted", "", {"commit": f"c{day}", "base": ""}) for day in (1, 3)
    ]
    assert [find_commit_at(adopted, at, "now") for at in DAYS] == ["now", "c1", "c1", "c3", "c3"]


def test_a_place_is_read_from_the_begin_of_a_rule() -> None:
    place = parse_place("specs/lifecycle/default.yaml:241 catastrophic-in-production")
    assert place is not None
    assert (place.path, place.line) == ("specs/lifecycle/default.yaml", 241)
    assert parse_place("by hand") is None
