"""`assay rollout` lists, shows, pauses, resumes and aborts; each order has a name and a reason, and counts once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.cli.workspace import Workspace
from assay.decide.state.node_projection import project_node_states
from assay.ledger.store import Ledger
from assay.model.entries.node_entries import MoveEntry, NodeEnrolledEntry
from assay.model.entries.rollouts import CommitAdoptedEntry, NodeProvenEntry, RolloutGroup, RolloutStartedEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.tell.report.latest_outcomes import FAILING
from assay.tell.report.status_changes import NO_ROLLOUT, StatusChange
from assay.tell.views.node_sync import find_rollout_waits
from tests.support.noted_readings import note_readings
from tests.support.places import ROOT

NODES = ("n0001", "n0002", "n0003", "n0004")
IDENT, BASE, COMMIT = "1a2b3c4d00000000", "a" * 40, "b" * 40


def at(minute: int) -> str:
    return f"2026-11-21T12:{minute:02}:00+00:00"


def history() -> list[LedgerEntry]:
    started = RolloutStartedEntry(IDENT, BASE, COMMIT, (RolloutGroup("zap", "bmc 1 → 2", BASE, NODES),))
    return [
        *(NodeEnrolledEntry("h100-a", "production").make_entry(f"e-{name}", at(0), name) for name in NODES),
        started.make_entry("started", at(1)),
        NodeProvenEntry(IDENT, "9 checks passed").make_entry("p1", at(3), "n0001"),
        MoveEntry("zap", "rollout 1a2b3c4d", "bmc 1 → 2", rollout=IDENT).make_entry("o2", at(4), "n0002"),
    ]


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    with_ledger(tmp_path, *history())
    note_readings(tmp_path)
    return tmp_path


def with_ledger(fleet: Path, *entries: LedgerEntry) -> list[LedgerEntry]:
    ledger = Ledger.open(fleet / ".assay" / "ledger.sqlite")
    ledger.append(*entries)
    try:
        return ledger.entries()
    finally:
        ledger.close()


def test_list_and_show_say_how_far_it_is_and_what_it_waits_for(ask):
    for words in ((), ("list",)):
        assert "1a2b3c4d aaaaaaaa → bbbbbbbb running, since" in " ".join(ask("rollout", *words).split())
    (listed,) = json.loads(ask("rollout", "--format", "json"))["rollouts"]
    assert (listed["id"], listed["nodes"], listed["proven"], listed["status"]) == (IDENT, 4, 1, "running")
    text = ask("rollout", "show", "1a2b")
    assert "1 proven, 1 leaving, 2 waiting" in text
    assert "n0002  leaving  its order is given" in text
    shown = json.loads(ask("rollout", "show", "1a2b", "--format", "json"))
    assert {one["node"]: one["progress"] for one in shown["nodes"]} == {
        "n0001": "proven", "n0002": "leaving", "n0003": "waiting", "n0004": "waiting",
    }  # fmt: skip
    assert shown["rollout"]["hours_left"] > 24, "there is a burn-in of a day"
    assert [name for wave in shown["waves"] for name in wave["nodes"]] == ["n0003", "n0004"]


def test_pause_resume_and_abort_are_recorded_with_who_and_why(ask, fleet):
    assert ask("rollout", "pause", "1a2b", "--reason", "look first") == (
        "rollout 1a2b3c4d is paused: nodes that are out finish their way\n"
    )
    assert "paused by ann: look first" in ask("rollout")
    assert json.loads(ask("rollout", "list", "--format", "json"))["rollouts"][0]["paused_by"]["who"] == "ann"
    with pytest.raises(AssayError, match="paused already, by ann: look first"):
        refused("pause", fleet)
    assert json.loads(ask("rollout", "pause", "1a2b", "--reason", "look first", "--format", "json"))["new"] is False
    for is_new in (True, False):
        assert json.loads(ask("rollout", "resume", "1a2b", "--reason", "fine", "--format", "json"))["new"] is is_new
    assert json.loads(ask("rollout", "pause", "1a2b", "--reason", "again", "--format", "json"))["who"] == "ann"
    aborted = json.loads(ask("rollout", "abort", "1a2b", "--reason", "wrong image", "--format", "json"))
    assert (aborted["rollout"][:4], aborted["reason"]) == ("1a2b", "wrong image")
    assert "aborted by ann: wrong image" in ask("rollout", "show", "1a2b")
    states = project_node_states(with_ledger(fleet))
    assert states["n0002"].move_request is None, "the order of a node that still serves is withdrawn"
    with pytest.raises(AssayError, match="has ended: aborted by ann: wrong image"):
        refused("abort", fleet)


def refused(verb: str, fleet: Path, ident: str = "1a2b") -> None:
    words = ["rollout", verb, ident, "--fleet", str(fleet), *(["--reason", "x"] if verb != "show" else [])]
    error = CliRunner().invoke(app, words).exception
    assert error is not None
    raise error


def test_an_unknown_rollout_is_refused_with_where_to_look(fleet):
    with pytest.raises(AssayError, match="there is no rollout ffff"):
        refused("show", fleet, "ffff")


def test_status_has_the_active_rollout_and_none_that_has_ended(ask):
    text = ask("status")
    assert "rollout 1a2b3c4d  aaaaaaaa → bbbbbbbb  running, since" in text
    assert "1 of 4 nodes proven" in text
    assert "→ assay rollout show 1a2b3c4d" in text
    assert json.loads(ask("status", "--format", "json"))["rollout"]["status"] == "running"
    ask("rollout", "abort", "1a2b", "--reason", "wrong image")
    assert "1a2b3c4d  aaaaaaaa" not in ask("status")
    assert json.loads(ask("status", "--format", "json"))["rollout"] is None


def test_explain_says_how_far_the_rollout_is_with_the_node(ask, fleet):
    text = " ".join(ask("explain", "n0003").split())
    assert "rollout 1a2b3c4d (aaaaaaaa → bbbbbbbb): bmc 1 → 2; 1 of 4 nodes proven" in text
    assert "this node: waiting, waits for its wave" in text
    told = json.loads(ask("explain", "n0002", "--format", "json"))["rollout"]
    assert (told["id"], told["progress"], told["proven"], told["change"]) == (IDENT, "leaving", 1, "bmc 1 → 2")
    other = NodeEnrolledEntry("h100-a", "production").make_entry("e-n0005", at(0), "n0005")
    with_ledger(fleet, other)
    assert json.loads(ask("explain", "n0005", "--format", "json"))["rollout"] is None


def test_customers_read_in_plain_words_that_work_is_planned_or_paused(ask):
    planned = "It gets new firmware or settings when its turn comes and its jobs have ended."
    text = " ".join(ask("explain", "n0003", "--for", "customer").split())
    assert planned in text
    assert "1a2b" not in text
    assert planned not in " ".join(ask("explain", "n0001", "--for", "customer").split()), "it has the change"
    ask("rollout", "pause", "1a2b", "--reason", "look first")
    text = " ".join(ask("explain", "n0003", "--for", "customer").split())
    assert "It is to get new firmware or settings; this work is paused at present." in text


def test_drift_of_nodes_that_are_not_done_is_explained_to_the_report(fleet):
    waits = find_rollout_waits(Workspace(fleet))
    assert (waits.rollout, waits.nodes) == (IDENT, {"n0002", "n0003", "n0004"}), "n0001 is proven"
    (firmware,) = [check for check in waits.checks if check.endswith("::test_firmware_is_the_bundles")]
    assert waits.explains(StatusChange(firmware, "h100-a/n0003", "n0003", 0, FAILING))
    heat = "suites/production/test_cooling.py::test_temperatures"
    assert not waits.explains(StatusChange(heat, "h100-a/n0003", "n0003", 0, FAILING)), "a real failure"
    shutil.rmtree(fleet / ".assay")
    assert find_rollout_waits(Workspace(fleet)) == NO_ROLLOUT


def test_a_commit_that_cannot_be_compared_stays_visible(ask, fleet):
    adopted = CommitAdoptedEntry("c" * 40, COMMIT, "git knows no revision")
    with_ledger(fleet, adopted.make_entry("adopted", at(9)))
    said = "cccccccc adopted"
    for verb in ("rollout", "status"):
        text = " ".join(ask(verb).split())
        assert "without a rollout: cannot be compared with bbbbbbbb: git knows no revision" in text
        assert "`assay sync` shows what differs" in text
    (told,) = json.loads(ask("rollout", "--format", "json"))["uncompared"]
    assert (told["commit"], told["base"], told["reason"]) == ("c" * 40, COMMIT, "git knows no revision")
    assert json.loads(ask("status", "--format", "json"))["uncompared"] == told
    with_ledger(fleet, CommitAdoptedEntry("d" * 40, "c" * 40).make_entry("later", at(10)))
    assert said not in " ".join(ask("status").split()), "a later commit was compared"
    assert said in " ".join(ask("rollout").split())


def test_without_a_ledger_there_is_no_rollout(ask, fleet):
    shutil.rmtree(fleet / ".assay")
    assert ask("rollout") == "no merged change took nodes out of service\n"


@pytest.mark.parametrize(("words", "page"), [(["list"], "rollouts"), (["show", IDENT], f"rollouts/{IDENT}")])
def test_what_people_read_names_its_page_where_the_policy_says_where_pages_are(ask, fleet, words, page):
    assert "page:" not in ask("rollout", *words)
    policy = fleet / "specs" / "lifecycle" / "default.yaml"
    policy.write_text(policy.read_text() + "pages: https://assay.example.org\n")
    assert ask("rollout", *words).splitlines()[-1] == f"page: https://assay.example.org/{page}"
