"""`assay replay` as a person runs it: in a fleet, without one, against another policy, with files that are wrong."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from assay.cli import app as cli
from assay.decide.faults.detection import FaultObservation
from assay.decide.state.decision_and_fault_entries import make_cleared_entry, make_enrolled_entry, make_fault_entry
from assay.declare.starter import new_repository
from assay.ledger.store import Ledger
from assay.model.entries.faults import FaultClearedEntry
from assay.model.timestamps import format_time
from tests.decide.replay.replay_world import clear, fault
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

DEFAULT = ROOT / "specs" / "lifecycle" / "default.yaml"


def replay(*words, where=ROOT):
    known = {name: value for name, value in os.environ.items() if name != "ASSAY_FLEET"}
    return run_assay("replay", *words, cwd=where, env=known)


def replay_costs(*words):
    answer = replay("--policy", DEFAULT, *words, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


@pytest.fixture
def events(tmp_path):
    file = tmp_path / "events.jsonl"
    shown = [
        fault(0, "n0003", "gpu.xid.79", in_use=True),
        clear(60, "n0003", "gpu.xid.79"),
        fault(90, "n0017", "gpu.odd"),
    ]
    file.write_text("".join(f"{json.dumps(event)}\n" for event in shown))
    return file


@pytest.fixture
def careful(tmp_path):
    file = tmp_path / "careful.yaml"
    file.write_text(
        "kind: LifecyclePolicy\nname: careful\nextends: default\n"
        "faults: {catastrophic-in-production: {timing: pending}}\n"
    )
    return file


def test_one_document_on_stdout_and_the_same_each_time(events):
    answers = [replay("--policy", DEFAULT, "--events", events, "--format", "json") for _ in range(2)]
    assert [answer.returncode for answer in answers] == [0, 0], answers[0].stderr
    assert answers[0].stdout == answers[1].stdout
    document = json.loads(answers[0].stdout)
    assert {"decisions", "nodes", "totals", "breaker_trips"} <= document.keys()
    first = document["decisions"][0]
    assert (first["node"], first["from"], first["to"], first["timing"]) == (
        "n0003",
        "production",
        "production-reboot",
        "immediate",
    )
    line = int(first["rule"].split()[0].rpartition(":")[2])
    assert "catastrophic-in-production" in DEFAULT.read_text().splitlines()[line - 1]
    assert len(document["nodes"]) >= 18, "the whole inventory"
    assert document["nodes"]["n0003"] == document["totals"]["seconds_out"] > 0
    assert document["unknown_faults"] == ["gpu.odd"]
    assert all(span["source"] for span in document["assumed"].values())


def make_fault(name, at):
    stamp = format_time(at)
    return FaultObservation(
        name, name, "gpu.missing", f"h100-a/{name}/gpu0", "catastrophic", "hardware", "reboot", 1, stamp, stamp,
        "planted", {}, (stamp,),
    )  # fmt: skip


def test_without_a_file_the_ledgers_own_faults_are_replayed(tmp_path):
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for part in ("inventory", "specs", "suites"):
        (fleet / part).symlink_to(ROOT / part)
    empty = replay("--policy", DEFAULT, "--fleet", fleet)
    assert (empty.returncode, "no fault of the last 30 days" in empty.stderr) == (2, True), empty.stderr
    now, names = datetime.now(UTC), ("n0003", "n0004", "n0005")
    (fleet / ".assay").mkdir(exist_ok=True)
    ledger = Ledger.open(fleet / ".assay/ledger.sqlite")
    ledger.append(*(make_enrolled_entry(name, "h100-a", "production", now - timedelta(days=60)) for name in names))
    for name, days in zip(names, (9, 5, 40), strict=True):
        at = now - timedelta(days=days)
        ledger.append(make_fault_entry(make_fault(name, at), at))
        ledger.append(make_cleared_entry(name, FaultClearedEntry(name, "repaired"), at + timedelta(days=1)))
    ledger.close()
    document = replay_costs("--fleet", fleet)
    moved = {decision["node"] for decision in document["decisions"] if decision["timing"] != "record"}
    assert (document["events"], moved) == (4, {"n0003", "n0004"}), "the third came before the last 30 days"


def test_it_needs_no_fleet_and_people_get_words(events, careful, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    answer = replay("--policy", careful, "--events", events, where=away)
    assert answer.returncode == 0, answer.stderr
    assert "n0003: production → production-reboot, when idle" in answer.stdout
    assert "not in the fault catalogue: gpu.odd" in answer.stdout


def test_without_a_fleet_the_specs_of_the_wheel_do(events, careful, tmp_path, monkeypatch):
    """The wheel packs the example's specs without its inventory; a checkout has both."""
    packed = tmp_path / "example"
    packed.mkdir()
    (packed / "specs").symlink_to(ROOT / "specs")
    monkeypatch.setattr(new_repository, "find_example", lambda: packed)
    monkeypatch.delenv("ASSAY_FLEET", raising=False)
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(cli.app, ["replay", "--policy", str(careful), "--events", str(events)])
    assert answer.exit_code == 0, answer.exception
    assert "n0003: production → production-reboot, when idle" in answer.stdout


@pytest.mark.parametrize("wrong", ["no events", "no policy", "a line", "a folder", "another kind", "a bad limit"])
def test_what_cannot_be_read_is_told_in_a_sentence(events, careful, tmp_path, wrong):
    policy, history = DEFAULT, events
    if wrong == "no events":
        history = tmp_path / "none.jsonl"
    elif wrong == "no policy":
        policy = tmp_path / "none.yaml"
    elif wrong == "a line":
        history.write_text(history.read_text() + '{"time": 5}\n')
    elif wrong == "a folder":
        history = tmp_path
    elif wrong == "another kind":
        policy = ROOT / "specs" / "faults" / "gpu.yaml"
    else:
        careful.write_text(careful.read_text() + "limits: {pool_percent: 400}\n")
        policy = careful
    answer = replay("--policy", policy, "--events", history, "--format", "json")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("assay: ")
    assert "Traceback" not in answer.stderr
    assert "a mistake of assay" not in answer.stderr
    if wrong == "a line":
        assert f"{history}:4: " in answer.stderr
        assert "event: Field required" in answer.stderr


def test_each_policy_has_its_own_costs(events, careful):
    here = replay_costs("--events", events)["costs"]
    there = replay_costs("--events", events, "--policy", careful)["costs"]
    assert here["out_node_hours"] > there["out_node_hours"]
    assert here["catastrophic_node_hours"] <= there["catastrophic_node_hours"]
    assert sorted(here) == sorted(there)
    text = replay("--policy", DEFAULT, "--events", events).stdout
    assert "node-hours served with an open catastrophic fault" in text
