"""Status and explain show the end of a hold, orders, and parts that were sent back once."""

from __future__ import annotations

from typer.testing import CliRunner

from assay.cli.app import app
from assay.decide.state.node_projection import project_node_states
from assay.ledger.location import read_all_entries
from assay.model.ledger_entry import LedgerEntry

AT = "2026-11-21T12:00:00+00:00"
PIECE = {"kind": "gpu", "serial": "1650923001"}
SENT = {"from": "n0001", "from_place": "gpu2", "sent_at": AT, "faults": ["gpu.xid.79"]}
BACK = "gpu7 (gpu 1650923001) was sent back from n0001 gpu2 on 2026-11-21 for gpu.xid.79"


def node(person, name: str):
    return next(one for one in person.reads("status")["nodes"] if one["node"] == name)


def test_a_hold_is_shown_with_its_age_and_its_end(ann):
    ann.types("hold", "n0003", "--reason", "kernel bisect", "--until", "2999-01-01")
    assert node(ann, "n0003")["held"]["until"].startswith("2999-01-01")
    for text in (ann.types("status"), ann.types("explain", "n0003")):
        assert "held by ann" in text
        assert "until 2999-01-01" in text
    assert "ago until 2999-01-01 00:00 UTC, in " in ann.types("status")


def test_what_a_person_asked_for_is_shown_until_it_is_so(ann):
    ann.types("move", "n0004", "triage", "--reason", "rattles")
    assert node(ann, "n0004")["asked"]["to"] == "triage"
    assert "ann asked for triage" in ann.types("status")
    assert "ann asked for triage" in ann.types("explain", "n0004")
    ann.types("move", "n0004", "production", "--reason", "it was the neighbour")
    assert node(ann, "n0004")["asked"] is None


def test_a_part_that_was_sent_back_once_is_shown_while_it_is_there(ann):
    ann.ledger().append(
        LedgerEntry("p", AT, "parts.seen", "n0004", {"parts": {"gpu7": PIECE}, "node": {}}),
        LedgerEntry("b", AT, "part.returned", "n0004", {**PIECE, "place": "gpu7", **SENT}),
    )
    assert node(ann, "n0004")["returned"] == [BACK]
    assert BACK in ann.types("status")
    assert BACK in ann.types("explain", "n0004")
    other = {"gpu7": {"kind": "gpu", "serial": "1650923002", "was": "1650923001"}}
    ann.ledger().append(LedgerEntry("q", AT, "parts.seen", "n0004", {"parts": other, "node": {}}))
    assert node(ann, "n0004")["returned"] == []


def test_why_a_node_left_is_told_when_effects_alone_led_it_on(ann):
    for number, (origin, to, kind, text) in enumerate(
        (
            ("production", "draining", "fault", "gpu.xid.79 on h100-a/n0003/gpu4"),
            ("draining", "triage", "effect", "drain-now verified: no customer job was running"),
        )
    ):
        decided = {
            "decision": f"d{number}",
            "from": origin,
            "to": to,
            "timing": "immediate",
            "rule": "r",
            "blockers": [],
        }
        because = [{"kind": kind, "id": "x", "text": text}]
        moved = {"from": origin, "to": to, "decision": f"d{number}"}
        ann.ledger().append(
            LedgerEntry(f"d{number}", AT, "decision", "n0003", {**decided, "because": because}),
            LedgerEntry(f"t{number}", AT, "transition", "n0003", moved),
        )
    why = "gpu.xid.79 on h100-a/n0003/gpu4; then drain-now verified: no customer job was running"
    assert node(ann, "n0003")["because"] == why
    assert project_node_states(read_all_entries(ann.root / ".assay/ledger.sqlite"))["n0003"].reason == why


def test_a_folder_that_is_no_fleet_repository_is_told_and_no_ledger_is_made_there(ann, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for verb in (["status"], ["status", "--format", "json"], ["tickets"], ["explain", "n0003"], ["history", "n0003"]):
        assert "this is no fleet repository" in ann.is_refused(*verb, at=elsewhere)
    assert not list(elsewhere.iterdir())


def test_a_fleet_that_cannot_be_read_is_told_after_what_the_ledger_knows(ann):
    """Without the declarations nothing says which nodes are not known: the counts alone would be an all-clear."""
    (spec := ann.root / "specs/nodes/hgx-h100.yaml").write_text(spec.read_text() + "\nx: [\n")
    shown = CliRunner().invoke(app, ["status", "--fleet", str(ann.root)])
    assert "n0003" in shown.stdout
    assert "specs/nodes/hgx-h100.yaml" in str(shown.exception)


def test_what_a_person_types_stays_one_line_that_no_terminal_acts_on(ann):
    ann.types("hold", "n0003", "--reason", "two\nlines \x1b[31m", "--who", "a\nb")
    held = node(ann, "n0003")["held"]
    assert (held["reason"], held["who"]) == ("two lines [31m", "a b")


def test_a_ledger_that_is_elsewhere_is_named_where_it_tells_nothing(ann, monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_LEDGER", str(tmp_path / "mistyped.sqlite"))
    assert f"according to the ledger that ASSAY_LEDGER names: {tmp_path}/mistyped.sqlite. Run:" in ann.types("status")
