"""What a person sees of the trust step, and says to it: status, approve, decline, refused orders, a restore."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from assay.declare.check import check_repository
from assay.declare.loader import load_fleet
from assay.model.decision import Decision, DecisionCause
from assay.model.entries.node_entries import DecisionEntry
from assay.model.timestamps import format_time

BECAUSE = ("--reason", "as planted")
POLICY = "specs/lifecycle/default.yaml"


def set_step(person, step: str, more: str = "") -> None:
    path = person.root / POLICY
    path.write_text(path.read_text().replace("  fleet: act\n", f"  fleet: {step}\n{more}"))


def hold_back(person, node: str, step: str) -> str:
    """Let the ledger say that a decision was held back by its trust step; return its id."""
    why = DecisionCause("trust", f"{step} cordon reboot", f"{step}: cordon, reboot → production-reboot")
    made = Decision(f"d-{node}-{step}", node, "production", "production-reboot", "record", "p.yaml:1 x", "wait", (why,))
    ledger = person.ledger()
    ledger.append(DecisionEntry.from_decision(made).make_entry(made.id, format_time(datetime.now(UTC)), node))
    ledger.close()
    return made.id


@pytest.mark.parametrize(
    "words",
    [("move", "n0003", "draining"), ("operations", "start", "zap", "n0002"), ("certify", "n0001")],
    ids=" ".join,
)
def test_at_watch_an_order_is_refused_with_the_line_to_change(ann, words):
    set_step(ann, "watch")
    told = ann.is_refused(*words, *BECAUSE)
    assert "its trust step is watch" in told
    assert f"{POLICY}:16" in told
    assert ann.kinds("n0001") == ann.kinds("n0002") == ann.kinds("n0003") == ["node.enrolled"]


def test_at_watch_bookkeeping_is_taken_and_a_certificate_that_leads_to_actions_is_not(ann):
    set_step(ann, "watch")
    assert "its trust step is watch" in ann.is_refused("certify", "n0002", *BECAUSE)
    ann.types("hold", "n0003", *BECAUSE)


def test_status_shows_the_step_and_what_watch_would_have_done(ann):
    set_step(ann, "watch", "  pools: {h100-b: act}\n")
    hold_back(ann, "n0003", "watch")
    told = ann.reads("status")["trust"]
    assert (told["step"], told["pools"]) == ("watch", {"h100-b": "act"})
    assert told["watched"]["decisions"] == {"cordon, reboot → production-reboot": 1}
    assert [one["kind"] for one in told["waits"]] == ["would"]
    text = " ".join(ann.types("status").split())
    assert f"trust step watch ({POLICY}:16); h100-b: act" in text
    assert "would have made 1 decision on 1 node" in text
    assert "nothing that waits" not in ann.is_refused("approve", told["waits"][0]["id"], *BECAUSE)


def test_a_person_says_yes_or_no_by_the_id_that_status_shows(ann):
    set_step(ann, "suggest")
    ident = hold_back(ann, "n0003", "suggest")
    [wait] = ann.reads("status")["trust"]["waits"]
    assert (wait["id"], wait["kind"], wait["undo"]) == (
        ident,
        "decision",
        "cordon is undone by uncordon, nothing undoes reboot",
    )
    [said] = ann.reads("decline", ident, *BECAUSE)["words"]
    body = said["entry"]["body"]
    assert (said["entry"]["kind"], body["decision"], body["who"], said["new"]) == ("declined", ident, "ann", True)
    assert "said no" in ann.reads("explain", "n0003")["trust"]["waits"][0]["said"]
    [said] = ann.reads("approve", ident[:8], *BECAUSE, "--within", "4h")["words"]
    assert (said["entry"]["kind"], said["entry"]["body"]["within_hours"]) == ("approved", 4.0)
    assert "you have said so before" in ann.types("approve", ident, *BECAUSE)
    assert "waits for a person" not in ann.types("explain", "n0004")
    assert "nothing that waits" in ann.is_refused("approve", "ffff", *BECAUSE)


def test_an_order_says_how_long_it_is_meant(ann):
    [said] = ann.reads("move", "n0003", "draining", *BECAUSE, "--within", "30m")["words"]
    assert said["entry"]["body"]["within_hours"] == 0.5
    assert "not a duration" in ann.is_refused("move", "n0004", "draining", *BECAUSE, "--within", "soon")


def test_open_orders_wait_after_a_restore(ann, monkeypatch):
    ann.types("move", "n0003", "draining", *BECAUSE)
    backup = ann.root / "backup.sqlite"
    ann.types("ledger", "backup", str(backup))
    monkeypatch.setenv("ASSAY_LEDGER", str(ann.root / "restored.sqlite"))
    ann.types("ledger", "restore", str(backup))
    [wait] = ann.reads("status")["trust"]["waits"]
    assert (wait["node"], wait["kind"]) == ("n0003", "order")
    assert "restored from backup.sqlite" in wait["text"]
    assert "give it again" in wait["text"]
    assert ann.reads("move", "n0003", "draining", *BECAUSE)["words"][0]["new"], "the same order counts anew"
    assert ann.reads("status")["trust"]["waits"] == []


def test_check_says_that_a_policy_without_steps_only_watches(ann):
    path = ann.root / POLICY
    path.write_text(path.read_text().replace("trust:\n  fleet: act\n  lab: act\n", ""))
    found = [one for one in check_repository(ann.root).problems if one.code == "ASY0412"]
    assert len(found) == 1
    assert found[0].severity == "warning"
    assert load_fleet(ann.root).find_trust("n0003", ["reboot"]).step == "watch"


def test_check_finds_steps_of_unknown_pools(ann):
    set_step(ann, "act", "  pools: {h100-x: watch}\n")
    [found] = [one for one in check_repository(ann.root).problems if one.code == "ASY0411"]
    assert "no node is in pool h100-x" in found.message


def test_a_lab_has_a_step_of_its_own(ann):
    set_step(ann, "watch")
    fleet = load_fleet(ann.root)
    assert not fleet.is_lab
    assert fleet.is_watched("n0003", "reboot")
