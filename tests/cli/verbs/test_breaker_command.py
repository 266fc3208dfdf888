"""`assay breaker` shows what a breaker holds; `clear` lets it be answered, once, by somebody with a reason."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.decide.state.node_projection import project_node_states
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from tests.support.noted_readings import note_readings
from tests.support.places import ROOT

NODES = ["n0001", "n0002", "n0003", "n0004"]
WAVE = "breaker: 4 of 4 serving nodes of pool h100-a show faults within 10 min (gpu.xid.79 on 4, in 2 racks)"


def at(minute: int) -> str:
    return f"2026-11-21T12:{minute:02}:00+00:00"


def history(name: str) -> list[LedgerEntry]:
    """Return the entries of a node whose fault the breaker holds; the first two nodes are cordoned."""
    seen = {"class": "gpu.xid.79", "subject": f"h100-a/{name}/gpu2", "severity": "catastrophic", "blame": "hardware"}
    times = {"count": 1, "first_seen": at(1), "last_seen": at(1), "detail": "fallen off the bus"}
    because = [
        {"kind": "breaker", "id": "h100-a", "text": WAVE},
        {"kind": "fault", "id": f"f-{name}", "text": f"gpu.xid.79 on h100-a/{name}/gpu2"},
    ]
    plain = {"from": "production", "because": because, "blockers": [WAVE]}
    held = {"to": "production-reboot", "timing": "record", "rule": "catastrophic-in-production", "remedy": "wait"}
    cordon = {"to": "production", "timing": "pending", "rule": "default.yaml:255 held-back", "remedy": "cordon"}
    entries = [
        LedgerEntry(f"e-{name}", at(0), "node.enrolled", name, {"pool": "h100-a", "state": "production"}),
        LedgerEntry(f"f-{name}", at(1), "fault", name, {"fault": f"f-{name}", **seen, **times}),
        LedgerEntry(f"d-{name}", at(2), "decision", name, {"decision": f"d-{name}", **plain, **held}),
    ]
    if name in NODES[:2]:
        entries.append(LedgerEntry(f"c-{name}", at(2), "decision", name, {"decision": f"c-{name}", **plain, **cordon}))
    return entries


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    ledger = Ledger.open(tmp_path / ".assay" / "ledger.sqlite")
    ledger.append(*(entry for name in NODES for entry in history(name)))
    ledger.close()
    note_readings(tmp_path)
    return tmp_path


def test_breaker_status_and_explain_say_what_is_held_why_and_how_to_clear_it(ask):
    for verb in ("breaker", "status"):
        text = " ".join(ask(verb).split())
        assert "the breaker of pool h100-a holds back 4 nodes, 2 cordoned, since" in text
        assert "n0001, n0002, n0003, n0004" in text
        assert WAVE in text
        assert "assay breaker clear h100-a --reason '…'" in text
    explained = " ".join(ask("explain", "n0003").split())
    assert "holds its answer back, with 4 nodes; to clear it: assay breaker clear h100-a --reason '…'" in explained


def test_the_metrics_count_what_is_held_and_name_the_breaker_as_what_it_waits_for(ask):
    lines = ask("metrics").splitlines()
    assert 'assay_breaker_open{pool="h100-a"} 1.0' in lines
    assert 'assay_breaker_held_nodes{pool="h100-a"} 4.0' in lines
    assert 'assay_pending_decisions{blocker="breaker",pool="h100-a",to_state="production"} 2.0' in lines


def test_as_json_both_verbs_say_the_same(ask):
    (told,) = json.loads(ask("breaker", "--format", "json"))["breakers"]
    assert told == {
        "pool": "h100-a",
        "series": "",
        "reason": WAVE,
        "since": "2026-11-21T12:02:00.000000+00:00",
        "nodes": NODES,
        "cordoned": NODES[:2],
        "clear": "assay breaker clear h100-a --reason '…'",
    }
    assert json.loads(ask("status", "--format", "json"))["breakers"] == [told]
    assert json.loads(ask("explain", "n0001", "--format", "json"))["breaker"] == told
    cleared = json.loads(ask("breaker", "clear", "h100-a", "--reason", "the leaf is mended", "--format", "json"))
    assert (cleared["who"], cleared["reason"], cleared["breaker"]["nodes"]) == ("ann", "the leaf is mended", NODES)


def test_a_cleared_breaker_is_in_the_ledger_with_who_and_why(ask, fleet):
    said = ask("breaker", "clear", "h100-a", "--reason", "the leaf is mended")
    assert said.startswith("the breaker of pool h100-a is cleared: the next rounds answer 4 nodes")
    ledger = Ledger.open(fleet / ".assay" / "ledger.sqlite")
    cleared = ledger.entries(kinds=["breaker.cleared"])
    assert [entry.node for entry in cleared] == NODES
    assert all(one.body == {"pool": "h100-a", "who": "ann", "reason": "the leaf is mended"} for one in cleared)
    assert not any(state.is_held_by_breaker for state in project_node_states(ledger.entries()).values())
    ledger.close()
    assert "no breaker holds anything back" in ask("breaker")
    assert "ann cleared the breaker: the leaf is mended" in ask("status")
    assert "the breaker of pool h100-a was cleared by ann: the leaf is mended" in ask("history", "n0002", "--moves")


def test_a_series_is_told_after_its_faults_and_answered_by_its_class(ask, fleet):
    ledger, because = Ledger.open(fleet / ".assay" / "ledger.sqlite"), []
    for name in ("n0005", "n0006"):
        enrolled, fault, decision = history(name)
        because = [decision.body["because"][0] | {"id": "h100-a/gpu.xid.79"}, decision.body["because"][1]]
        held = replace(decision, body=decision.body | {"because": because})
        over = {"fault": f"f-{name}", "because": "gone", "seen_up_to": 0}
        ledger.append(enrolled, fault, held, LedgerEntry(f"o-{name}", at(3), "fault.cleared", name, over))
    ledger.close()
    wave, series = json.loads(ask("breaker", "--format", "json"))["breakers"]
    assert (wave["nodes"], series["nodes"]) == (NODES, ["n0005", "n0006"])
    assert series["clear"] == "assay breaker clear h100-a --class gpu.xid.79 --reason '…'"
    assert 'assay_breaker_open{pool="h100-a"} 1.0' in ask("metrics").splitlines()
    ask("breaker", "clear", "h100-a", "--class", "gpu.xid.79", "--reason", "the driver is rolled back")
    assert "h100-a was cleared for gpu.xid.79 by ann: the driver is rolled back" in ask("history", "n0005", "--moves")
    assert json.loads(ask("breaker", "--format", "json"))["breakers"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["byo-b", "--reason", "x"], "holds nothing back"),
        (["h100-a", "--class", "gpu.xid.79", "--reason", "x"], "holds nothing back"),
        (["h100-z", "--reason", "x"], "there is no pool h100-z"),
        (["h100-a", "--reason", " "], "a reason is missing"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_recorded(fleet, words, said):
    with pytest.raises(AssayError, match=said):
        CliRunner().invoke(app, ["breaker", "clear", *words, "--fleet", str(fleet)], catch_exceptions=False)
    ledger = Ledger.open(fleet / ".assay" / "ledger.sqlite")
    assert ledger.entries(kinds=["breaker.cleared"]) == []
    ledger.close()
