"""`assay explain` prints the chain of every kind of decision: cause, rule with its line, effects, verification."""

from __future__ import annotations

import shutil

import pytest

from assay.ledger.store import Ledger
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

LINE = "specs/lifecycle/default.yaml"


@pytest.fixture
def explained(paper, tmp_path):
    """Return what `assay explain NODE` prints, in a copy of this fleet whose ledger is the paper's."""
    for name in ("inventory", "specs", "suites", "playbooks"):
        shutil.copytree(ROOT / name, tmp_path / name)

    def of(name):
        (tmp_path / ".assay").mkdir(exist_ok=True)
        ledger = Ledger.open(tmp_path / ".assay" / "ledger.sqlite")
        ledger.append(*paper.log.values())
        ledger.close()
        told = run_assay("explain", name, "--full", "--last", 0, cwd=tmp_path)
        assert told.returncode == 0, told.stderr
        return told.stdout

    return of


def test_every_kind_of_decision_names_its_cause_its_rule_and_what_was_done(paper, explained):
    paper.lines = {("LifecyclePolicy/default", path): f"{LINE}:{number}" for number, path in enumerate(PATHS, 100)}
    _busy_and_hot(paper)
    paper.say("certified", "n0001", reason="the fan was blocked")
    _decide(paper)
    paper.say("hold", "n0001", reason="mine", until=paper.now.isoformat())
    _decide(paper)
    paper.say("move", "n0001", to="triage", reason="a look inside")
    _decide(paper)
    paper.jobs["n0001"] = ()
    _decide(paper)
    text = explained("n0001")
    for said in (
        "production → draining when idle",
        f"by the rule {LINE}:100 degraded-in-production",
        "effect cordon verified",
        "withdraws the pending move",
        "because of decision: what it waited to answer is over",
        "effect uncordon verified",
        "ends the hold",
        f"by the rule {LINE}:102 hold-ends",
        "because of person: ann asked for triage: a look inside",
        f"by the rule {LINE}:103 person",
        "effect drain-now verified",
    ):
        assert said in text, f"{said!r} is missing in:\n{text}"


def test_a_node_of_a_short_rack_says_which_rack_and_who_is_missing(paper, explained):
    paper.lines = {("LifecyclePolicy/default", "racks.nvl72"): f"{LINE}:300"}
    for index in range(1, 19):
        paper.add(f"n{index:04}", "production" if index > 3 else "test", rack="r9", kind="gb200-nvl72")
    _decide(paper)
    text = explained("n0004")
    assert "rack r9 lacks 3 of 18 nodes, 2 may be out: n0001 (test), n0002 (test), n0003 (test)" in text
    assert f"by the rule {LINE}:300 racks.nvl72" in text
    assert "effect cordon verified" in text
    assert "the node stays cordoned" in text


def test_what_a_node_has_cost_in_its_life_is_told_with_its_reasons(paper, explained):
    _busy_and_hot(paper)
    assert "lemon score 0.25 of 24: 1 × cordon (0.25)" in explained("n0001")


PATHS = ["faults.degraded-in-production", "waiting", "holds", "edges.production", "states.draining.pass_to"]


def _busy_and_hot(paper):
    paper.add("n0001")
    paper.jobs["n0001"] = ("train",)
    paper.fault("n0001", "gpu.thermal", "gpu3")
    _decide(paper)


def _decide(paper):
    """Decide until nothing more is decided, and let everything that follows be done."""
    for _ in range(4):
        paper.step()
        for name in paper.nodes:
            paper.settle(name)
