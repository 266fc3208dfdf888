"""Status, history and explain show the ledger; hold, release and certify write to it."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from tests.support.forked_assay import run_assay
from tests.support.noted_readings import note_readings
from tests.support.places import ROOT

FAULT = {"class": "gpu.xid.79", "subject": "h100-a/n0003/gpu2", "severity": "catastrophic", "blame": "hardware"}
SEEN = {"count": 2, "first_seen": "2026-11-21T12:00:00+00:00", "last_seen": "2026-11-21T12:01:00+00:00"}
RULE = "specs/lifecycle/default.yaml:57 catastrophic-in-production"
HOT = {"kind": "fault", "id": "f2", "text": "gpu.thermal on h100-a/n0004/gpu3"}
CHECK = "suites/seatrial/test_gpu.py::test_gpu_count"


def at(minute: int) -> str:
    return f"2026-11-21T12:{minute:02}:00+00:00"


def decision(id_, origin, target, timing, because, remedy="", blockers=()):
    plain = {"decision": id_, "from": origin, "to": target, "timing": timing, "rule": RULE}
    return {**plain, "remedy": remedy, "because": because, "blockers": list(blockers)}


HISTORY = [
    LedgerEntry("e2", at(0), "node.enrolled", "n0002", {"pool": "h100-a", "state": "seatrial"}),
    LedgerEntry("e3", at(0), "node.enrolled", "n0003", {"pool": "h100-a", "state": "production"}),
    LedgerEntry("e4", at(0), "node.enrolled", "n0004", {"pool": "h100-a", "state": "production"}),
    LedgerEntry("e1", at(0), "node.enrolled", "n0001", {"pool": "h100-a", "state": "onboard"}),
    LedgerEntry("f1", at(1), "fault", "n0003", {"fault": "f1", **FAULT, **SEEN, "detail": "fallen off the bus"}),
    LedgerEntry(
        "d1",
        at(2),
        "decision",
        "n0003",
        decision(
            "d1", "production", "production-reboot", "immediate", [{"kind": "fault", "id": "f1", "text": "XID 79"}]
        ),
    ),
    LedgerEntry(
        "t1", at(2), "transition", "n0003", {"from": "production", "to": "production-reboot", "decision": "d1"}
    ),
    LedgerEntry("x1", at(3), "effect.intent", "n0003", {"effect": "x1", "action": "reboot", "decision": "d1"}),
    LedgerEntry(
        "x1v", at(6), "effect.verified", "n0003", {"effect": "x1", "reason": "the boot id changed", "facts": {}}
    ),
    LedgerEntry("o1", at(6), "observe.failed", "n0003", {"channel": "bmc", "reason": "no answer within 10 s"}),
    LedgerEntry(
        "d2",
        at(7),
        "decision",
        "n0004",
        decision("d2", "production", "draining", "pending", [HOT], "triage", ["train"]),
    ),
    LedgerEntry(
        "d3",
        at(8),
        "decision",
        "n0002",
        decision(
            "d3",
            "seatrial",
            "seatrial",
            "record",
            [{"kind": "outcome", "id": f"run-1/{CHECK}[h100-a/n0002]", "text": "test_gpu_count failed: 7 of 8 GPUs"}],
            "ticket",
        ),
    ),
    LedgerEntry("k1", at(8), "ticket.opened", "n0002", {"ticket": "k1", "title": "GPU 5 is missing"}),
]


@pytest.fixture
def fleet(tmp_path):
    """A repository with this project's declarations and a short history."""
    for part in ("inventory", "specs"):
        if (ROOT / part).exists():
            shutil.copytree(ROOT / part, tmp_path / part)
    ledger = Ledger.open(tmp_path / ".assay" / "ledger.sqlite")
    ledger.append(*HISTORY)
    failed = Outcome(
        CHECK, "h100-a/n0002", "n0002", "fail", "7 of 8 GPUs", "gpu.missing", ("seatrial",), evidence="ab" * 32
    )
    ledger.record(SuiteRun("run-1", at(8)), [failed])
    ledger.close()
    note_readings(tmp_path)
    return tmp_path


@pytest.fixture
def refused(fleet, monkeypatch):
    monkeypatch.setenv("ASSAY_WHO", "ann")

    def asked(*words: str) -> str:
        with pytest.raises(AssayError) as told:
            CliRunner().invoke(app, [*words, "--fleet", str(fleet)], catch_exceptions=False)
        return str(told.value)

    return asked


def test_status_says_where_every_node_is_in_exactly_the_promised_words(ask):
    told = json.loads(ask("status", "--format", "json"))
    assert list(told) == ["nodes", "breakers", "pools", "rollout", "uncompared", "trust", "context"]
    assert (told["trust"]["step"], told["trust"]["waits"], told["trust"]["watched"]) == ("act", [], None)
    assert (told["breakers"], told["rollout"], told["uncompared"]) == ([], None, None)
    assert [node["node"] for node in told["nodes"]] == ["n0001", "n0002", "n0003", "n0004"]
    names = [
        "node",
        "pool",
        "state",
        "since",
        "pending",
        "held",
        "asked",
        "opened",
        "returned",
        "jobs_unknown",
        "burn_in",
        "because",
        "unread_since",
        "read_at",
        "incident",
        "next",
        "scheduler",
    ]
    assert {tuple(node) for node in told["nodes"]} == {tuple(names)}
    one, two, three, four = told["nodes"]
    assert (one["state"], one["pending"], one["held"]) == ("onboard", None, None)
    assert "7 of 8 GPUs" in two["because"], "what keeps it there, not only how it came"
    assert (three["state"], three["since"][:19], three["because"]) == ("production-reboot", at(2)[:19], "XID 79")
    pending = four["pending"]
    assert (pending["to"], pending["since"]) == ("draining", "2026-11-21T12:07:00.000000+00:00")
    assert pending["blockers"] == ["train"]
    assert [cause["text"] for cause in pending["because"]] == ["gpu.thermal on h100-a/n0004/gpu3"]


def test_status_for_people_names_the_job_that_is_waited_for(ask):
    told = ask("status")
    assert "production → draining" in told
    assert "→ running jobs: end, so that the node can leave service (train" in told
    assert "1 onboard" in told


def test_status_of_a_fleet_that_was_never_looked_at_says_what_to_do_and_makes_no_ledger(tmp_path):
    shutil.copytree(ROOT / "inventory", tmp_path / "inventory")
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    result = CliRunner().invoke(app, ["status", "--fleet", str(tmp_path)])
    assert "assay reconcile --once" in result.stdout
    assert json.loads(CliRunner().invoke(app, ["status", "--format", "json", "--fleet", str(tmp_path)]).stdout) == {
        "nodes": [],
        "breakers": [],
        "pools": [],
        "rollout": None,
        "uncompared": None,
        "trust": {
            "step": "act",
            "where": "specs/lifecycle/default.yaml:16",
            "waits": [],
            "pools": {},
            "actions": {},
            "watched": None,
        },
        "context": "fleet",
    }
    assert not list(tmp_path.rglob("*.sqlite"))


def test_history_tells_everything_in_order(ask):
    told = json.loads(ask("history", "n0003", "--format", "json"))
    assert [line["kind"] for line in told["entries"]] == [entry.kind for entry in HISTORY if entry.node == "n0003"]
    assert told["state"] == "production-reboot"
    text = ask("history", "n0003")
    for piece in (
        "fallen off the bus",
        "reboot begins",
        "the boot id changed",
        "bmc did not answer",
        "(2 times)",
        RULE,
    ):
        assert piece in text
    assert "a technician" in ask("history", "n0002")


def test_explain_shows_the_chain_from_the_fault_to_the_proof(ask):
    told = json.loads(ask("explain", "n0003", "--format", "json"))
    (link,) = told["chain"]
    assert (link["from"], link["to"], link["rule"]) == ("production", "production-reboot", RULE)
    (cause,) = link["because"]
    assert (cause["kind"], cause["text"], cause["evidence"]) == ("fault", "XID 79", "")
    (effect,) = link["effects"]
    assert (effect["action"], effect["standing"], effect["reason"]) == ("reboot", "verified", "the boot id changed")
    text = ask("explain", "n0003", "--full")
    assert text.index("XID 79") < text.index(RULE) < text.index("the boot id changed")


def test_explain_leads_a_failing_check_back_to_its_evidence(ask):
    (link,) = json.loads(ask("explain", "n0002", "--format", "json"))["chain"]
    (cause,) = link["because"]
    assert "7 of 8 GPUs" in cause["text"]
    assert cause["evidence"] == "ab" * 32
    assert "evidence abababababab" in ask("explain", "n0002", "--full")
    assert "running jobs: end, so that the node can leave service (train" in ask("explain", "n0004")


KNOWN = """kind: KnownIssues
name: fleet
issues:
  - issue: https://git.example/issues/7
    match: {check: "suites/seatrial/test_gpu.py::*", node: n0002}
    reason: slot 5 waits for its GPU
    owner: ann
    expires: EXPIRES
"""


@pytest.mark.parametrize(("expires", "excused"), [("2999-01-01", True), ("2026-01-01", False)])
def test_explain_says_what_fails_and_is_known_and_until_when(expires, excused, ask, fleet):
    (fleet / "specs" / "known-issues.yaml").write_text(KNOWN.replace("EXPIRES", expires))
    told = json.loads(ask("explain", "n0002", "--format", "json"))
    said = f"known: https://git.example/issues/7 until {expires}"
    assert [one["why"] for one in told["undecided"]] == ([said] if excused else [])
    assert [one["phase"] for one in told["requires"]] == ["seatrial"]
    count = f"{CHECK}[h100-a/n0002]: "
    reasons = [lack.removeprefix(count) for lack in told["requires"][0]["lacks"] if lack.startswith(count)]
    assert reasons == ["judged without evidence" if excused else "fail: 7 of 8 GPUs"]
    text = ask("explain", "n0002")
    assert ("test_gpu_count fails on h100-a/n0002: 7 of 8 GPUs (known:" in text) is excused
    assert "phase seatrial has not passed: " in text


def test_a_hold_is_shown_with_who_and_why_until_it_is_released(ask, refused):
    ask("hold", "n0003", "--reason", "bisecting a kernel bug")
    node = next(one for one in json.loads(ask("status", "--format", "json"))["nodes"] if one["node"] == "n0003")
    assert (node["held"]["who"], node["held"]["reason"]) == ("ann", "bisecting a kernel bug")
    assert "held by ann" in ask("status")
    assert "already held by ann" in refused("hold", "n0003", "--reason", "me too")
    ask("release", "n0003", "--reason", "found it")
    assert "not held" in ask("release", "n0003", "--reason", "again"), "it is as it was asked for"
    assert [one["kind"] for one in json.loads(ask("history", "n0003", "--format", "json"))["entries"]][-2:] == [
        "hold",
        "release",
    ]


def test_certification_is_written_down_where_the_state_waits_for_it(ask, refused):
    assert "certified in onboard by ann" in ask("certify", "n0001", "--reason", "cabled and inspected")
    assert "needs no certification" in refused("certify", "n0003", "--reason", "looks fine to me")


def test_a_word_without_a_reason_is_not_taken(refused):
    assert "reason is missing" in refused("hold", "n0003", "--reason", "  ")


@pytest.mark.parametrize("verb", ["history", "explain", "hold", "release", "certify"])
def test_an_unknown_node_is_answered_with_its_neighbours(refused, verb):
    reason = [] if verb in ("history", "explain") else ["--reason", "r"]
    told = refused(verb, "n003", *reason)
    assert "there is no node n003" in told
    assert "n0003" in told


def test_a_node_of_the_inventory_that_was_never_looked_at_is_said_to_be_that(refused):
    assert "never observed" in refused("explain", "n0009")


def test_an_unknown_node_ends_with_exit_code_two_and_no_traceback(fleet):
    run = run_assay("explain", "nope", "--fleet", fleet, env={**os.environ, "ASSAY_WHO": "ann"})
    assert (run.returncode, run.stdout) == (2, "")
    assert "there is no node nope" in run.stderr
    assert "Traceback" not in run.stderr
