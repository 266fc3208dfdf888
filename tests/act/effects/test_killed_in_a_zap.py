"""assay is killed in the middle of a playbook; the next pass finishes its effect, and no image was sent twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from assay.act.effects.effect_journal import EFFECT_KINDS
from assay.decide.state import decision_and_fault_entries
from assay.model.ledger_entry import LedgerEntry
from tests.act.effects.act_once import desk_of
from tests.support.lab_room import Room, lab_room
from tests.support.places import ROOT

PROGRAM = "tests.act.effects.act_once"
NODE = "n0003"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with lab_room(tmp_path_factory.mktemp("fleet"), rate=120.0) as room:
        yield room


@pytest.fixture
def owed(room: Room) -> Room:
    """A node with two old components that a decision has just sent to zap, and an empty history but for that."""
    _forget(room)
    room.fresh(NODE, BMC="01.00.00", BIOS="2.0.0")
    now = room.world.clock().now()
    decision = {"decision": "d1", "from": "seatrial", "to": "zap", "timing": "immediate", "rule": "a rule"}
    decision |= {"remedy": "", "because": [], "blockers": []}
    moved = {"from": "seatrial", "to": "zap", "decision": "d1"}
    desk_of(room.root).ledger.append(
        decision_and_fault_entries.make_enrolled_entry(NODE, "h100-a", "seatrial", now),
        LedgerEntry("d1", now.isoformat(), "decision", NODE, decision),
        LedgerEntry("t1", now.isoformat(), "transition", NODE, moved),
    )
    return room


@pytest.fixture
def corrected(room: Room) -> Room:
    """A node in service that differs in two settings, which a decision wants brought at once."""
    _forget(room)
    room.fresh(NODE)

    def spoil(state: dict[str, Any]) -> None:
        state["host"]["governor"] = "powersave"
        state["host"]["sysctls"]["vm.zone_reclaim_mode"] = "1"

    room.change(NODE, spoil)
    now = room.world.clock().now()
    because = [{"kind": "setting", "id": path, "text": "it differs"} for path in ("host.sysctls", "host.governor")]
    decision = {"decision": "d1", "from": "production", "to": "production", "timing": "record", "rule": "a rule"}
    decision |= {"remedy": "configure", "because": because, "blockers": []}
    desk_of(room.root).ledger.append(
        decision_and_fault_entries.make_enrolled_entry(NODE, "h100-a", "production", now),
        LedgerEntry("d1", now.isoformat(), "decision", NODE, decision),
    )
    return room


def _forget(room: Room) -> None:
    for name in (".assay-lab/ledger.sqlite", ".assay-lab/dbos.sqlite"):
        for path in room.root.glob(f"{name}*"):
            path.unlink()


@pytest.mark.parametrize(
    ("component", "children"),
    [
        pytest.param("bmc", "orphaned", marks=pytest.mark.slow),
        pytest.param("bios", "killed", marks=pytest.mark.slow),
        pytest.param("bios", "orphaned", marks=pytest.mark.slow),
        pytest.param("bmc", "killed", marks=pytest.mark.slow),
    ],
)
def test_each_image_is_sent_once_and_the_ledger_has_one_journal_of_it(owed: Room, component: str, children: str):
    first = _start(owed)
    _until(lambda: _writing(owed, component), first)
    started = _kill(first, children)

    second = _start(owed)
    err = second.communicate(timeout=120)[1]

    assert second.returncode == 0, err
    _wait_for_end(started)
    assert owed.flashes(NODE) == ["bmc", "bios"]
    lines = [(entry.kind, entry.body["action"]) for entry in desk_of(owed.root).ledger.entries(NODE, EFFECT_KINDS)]
    assert lines.count(("effect.intent", "zap")) == 1
    assert lines.count(("effect.verified", "zap")) == 1
    assert not {kind for kind, _ in lines} & {"effect.failed", "effect.unknown"}


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize("children", ["orphaned", "killed"])
def test_settings_are_brought_and_read_back_with_one_journal_of_it(corrected: Room, children: str):
    first = _start(corrected)
    _until(lambda: _read_settings(corrected) == ("0", "powersave"), first)
    _kill(first, children)
    kinds = [entry.kind for entry in desk_of(corrected.root).ledger.entries(NODE, EFFECT_KINDS)]
    assert kinds == ["effect.intent"]

    second = _start(corrected)
    err = second.communicate(timeout=240)[1]

    assert second.returncode == 0, err
    assert _read_settings(corrected) == ("0", "performance")
    lines = desk_of(corrected.root).ledger.entries(NODE, EFFECT_KINDS)
    ends = [entry for entry in lines if entry.kind in ("effect.verified", "effect.failed", "effect.unknown")]
    assert [(entry.kind, entry.body["reason"]) for entry in ends] == [
        ("effect.verified", "as declared: host.sysctls, host.governor")
    ]
    assert [entry.kind for entry in lines].count("effect.intent") == 1
    told = _start(corrected).communicate(timeout=60)[1]
    assert [line for line in told.splitlines() if "runpy" not in line] == [], "nothing is left to do"


def _read_settings(room: Room) -> tuple[str, str]:
    host = room.state(NODE)["host"]
    return host["sysctls"]["vm.zone_reclaim_mode"], host["governor"]


@pytest.mark.slow
def test_a_run_that_sigterm_cancels_is_never_read_as_nothing_happened(owed: Room):
    first = _start(owed, "alone", NODE, "zap")
    _until(lambda: _writing(owed, "bmc"), first)
    first.send_signal(signal.SIGTERM)
    err = first.communicate(timeout=120)[1]

    lines = desk_of(owed.root).ledger.entries(NODE, EFFECT_KINDS)
    assert [entry.kind for entry in lines] == ["effect.intent", "effect.done", "effect.tried"], err
    assert "ansible-playbook ended canceled in the middle" in lines[1].body["reason"]
    assert owed.flashes(NODE) == ["bmc"], "the task that was under way has brought its image"
    assert "bios" in lines[2].body["reason"].lower(), "what was read afterwards says how far it got"


@pytest.mark.slow
def test_credentials_revoked_in_the_middle_are_told_lose_nothing_and_recover(owed: Room):
    first = _start(owed)
    _until(lambda: _writing(owed, "bmc"), first)
    with owed.shut_out(NODE):
        err = first.communicate(timeout=240)[1]
        assert first.returncode == 0, err
        assert "zap: cannot tell: " in err
        assert "the BMC refuses the user or the password" in err
        still = _start(owed).communicate(timeout=240)[1]
        assert "zap: cannot tell" in still

    err = _start(owed).communicate(timeout=240)[1]

    assert owed.flashes(NODE) == ["bmc", "bios"], err
    kinds = [entry.kind for entry in desk_of(owed.root).ledger.entries(NODE, EFFECT_KINDS)]
    assert kinds.count("effect.intent") == kinds.count("effect.verified") == kinds.count("effect.unknown") == 1


def _start(room: Room, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", PROGRAM, str(room.root), *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True, start_new_session=True, cwd=ROOT)


def _writing(room: Room, component: str) -> bool:
    now = room.world.clock().now().isoformat()
    tasks = [task for task in room.state(NODE)["tasks"] if task["component"] == component]
    return any(task["started_at"] <= now < task["ends_at"] for task in tasks)


def _kill(process: subprocess.Popen[str], children: str) -> list[int]:
    """SIGKILL the process, alone or with everything that it started, and return the pids of what it started."""
    started = _offspring(process.pid)  # ansible-playbook, which has a session of its own, and its tasks
    process.kill()
    for pid in started if children == "killed" else ():
        with suppress(ProcessLookupError):  # it ended by itself
            os.kill(pid, signal.SIGKILL)
    process.communicate()
    return started


def _wait_for_end(pids: list[int]) -> None:
    deadline = time.monotonic() + 60
    while alive := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"{alive} outlive what started them"
        time.sleep(0.1)


def _offspring(pid: int) -> list[int]:
    found: list[int] = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            child, rest = status.read_text().split(" ", 1)
        except OSError:
            continue
        if int(rest.rpartition(")")[2].split()[1]) == pid:
            found += [int(child), *_offspring(int(child))]
    return found


def _until(come: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not come():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "the BMC never wrote it"
        time.sleep(0.02)
