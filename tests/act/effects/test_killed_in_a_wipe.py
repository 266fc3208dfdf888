"""assay is killed while drives erase themselves; a later pass proves them, and no drive is erased twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from assay.act.effects.effect_journal import EFFECT_KINDS
from assay.decide.state import decision_and_fault_entries
from assay.lab.faults.injection import inject_fault
from assay.model.entries.effects import WipeOrderedEntry, WipeProvedEntry
from assay.model.ledger_entry import LedgerEntry
from tests.act.effects.act_once import desk_of
from tests.support.lab_room import Room, lab_room
from tests.support.places import ROOT

PROGRAM = "tests.act.effects.act_once"
RATE, LONG_S = 120.0, 1200
DRIVES = 8


pytestmark = pytest.mark.slow(minutes=2)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with lab_room(tmp_path_factory.mktemp("fleet"), rate=RATE) as room:
        yield room


def send_to_rma(room: Room, node: str) -> None:
    """Let a decision have just sent a node, which assay has closed, to its vendor."""
    room.fresh(node)
    room.scheduler(node).cordon(node, "assay: a test")
    now = room.world.clock().now()
    decision = {"decision": f"d-{node}", "from": "triage", "to": "rma", "timing": "immediate", "rule": "a rule"}
    decision |= {"remedy": "rma", "because": [], "blockers": []}
    moved = {"from": "triage", "to": "rma", "decision": f"d-{node}"}
    desk_of(room.root).ledger.append(
        decision_and_fault_entries.make_enrolled_entry(node, "h100-a", "triage", now),
        LedgerEntry(f"d-{node}", now.isoformat(), "decision", node, decision),
        LedgerEntry(f"t-{node}", now.isoformat(), "transition", node, moved),
    )


def start(room: Room) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", PROGRAM, str(room.root)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True, start_new_session=True, cwd=ROOT)


def until(come: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not come():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def act_until(room: Room, node: str, end: tuple[str, str]) -> str:
    """Run passes until an effect of a node has ended in a way; return what the last pass showed."""
    deadline = time.monotonic() + 120
    while True:
        process = start(room)
        err = process.communicate(timeout=240)[1]
        assert process.returncode == 0, err
        if end in ends(room, node):
            return err
        assert time.monotonic() < deadline, err


def ends(room: Room, node: str) -> list[tuple[str, str]]:
    """Return how the effects of a node ended."""
    entries = desk_of(room.root).ledger.entries(node, EFFECT_KINDS)
    last = ("effect.verified", "effect.failed", "effect.unknown")
    return [(one.kind.removeprefix("effect."), one.body["action"]) for one in entries if one.kind in last]


def sanitizes(room: Room, node: str) -> list[list[str]]:
    return [[one["method"] for one in drive.get("sanitizes", [])] for drive in room.state(node)["nvme"]]


def test_a_wipe_goes_on_where_a_killed_controller_left_it_and_no_drive_is_erased_twice(room: Room) -> None:
    node = "n0003"
    send_to_rma(room, node)
    room.change(node, lambda state: state["timing"].update(sanitize_s=LONG_S))
    first = start(room)
    until(lambda: all(sanitizes(room, node)), first)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()

    err = act_until(room, node, ("verified", "dossier"))

    assert sanitizes(room, node) == [["sanitize-crypto"]] * DRIVES, err
    done = [end for end in ends(room, node) if end != ("unknown", "wipe")]
    assert done == [("verified", "wipe"), ("verified", "dossier")], err
    ledger = desk_of(room.root).ledger
    for kind in (WipeOrderedEntry.kind, WipeProvedEntry.kind):
        assert len(ledger.entries(node, [kind])) == DRIVES, kind


def test_a_node_with_a_drive_that_lies_leaves_with_its_dossier_and_without_the_drive(room: Room) -> None:
    node = "n0004"
    send_to_rma(room, node)
    inject_fault(room.world, "nvme.wipe-unknown", node, {"drive": 3, "knows": "sanitize-crypto"})
    inject_fault(room.world, "nvme.sanitize-lies", node, {"drive": 3})
    err = act_until(room, node, ("verified", "dossier"))
    assert ends(room, node) == [("failed", "wipe"), ("verified", "dossier")], err
    (failed,) = desk_of(room.root).ledger.entries(node, ["effect.failed"])
    reason: str = failed.body["reason"]
    assert reason.startswith("nvme3 (serial S")
    assert "remove these drives and shred them; proven wiped: nvme0" in reason
    facts: list[dict[str, Any]] = failed.body["facts"]["drives"]
    assert [one["standing"] for one in facts].count("wiped") == DRIVES - 1
    explain = [sys.executable, "-m", "assay", "explain", node, "--fleet", str(room.root)]
    explained = subprocess.run(explain, capture_output=True, text=True, check=False).stdout
    assert "effect wipe failed" in explained
    assert "shred them; proven wiped: nvme0" in explained


def test_a_node_that_cannot_be_reached_goes_to_its_vendor_and_its_record_says_so(room: Room) -> None:
    node = "n0005"
    send_to_rma(room, node)
    room.change(node, lambda state: state["power"].update(state="Off"))
    err = act_until(room, node, ("verified", "dossier"))
    (failed,) = desk_of(room.root).ledger.entries(node, ["effect.failed"])
    assert failed.body["reason"].startswith("its drives are not proven wiped: ")
    assert "remove these drives and shred them" in failed.body["reason"]
    assert ends(room, node) == [("failed", "wipe"), ("verified", "dossier")], err
