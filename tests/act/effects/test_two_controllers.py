"""Two controllers on one PostgreSQL share the work; one is killed, the other finishes in time, and nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.act.effects.effect_journal import EFFECT_KINDS
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.act.effects.share_once import desk_of
from tests.support.places import ROOT

PROGRAM = "tests.act.effects.share_once"
LEASE_S = 3.0
USUAL = {"racks": 6, "nodes": 8, "deadline_s": 240.0, "at_once": 4, "seconds": 0.3, "lease_s": LEASE_S}


class Room:
    """Some controllers on one ledger, and a world that counts what they do to it."""

    def __init__(self, root: Path, url: str, **asked: float) -> None:
        self.root, self.url, self.asked = root, url, USUAL | asked
        self.world = root / "world"
        self.world.mkdir()
        self.ledger = Ledger.open(url)
        self.running: list[subprocess.Popen[str]] = []
        desk = desk_of(root / "a", url, self.asked)
        self.nodes = list(desk.fleet.nodes)
        for node in self.nodes:
            self.ledger.append(
                LedgerEntry(f"e-{node}", desk.now, "node.enrolled", node, {"pool": "h100-a", "state": "test"})
            )

    def send_to_zap(self) -> None:
        for node in self.nodes:
            self._sent_to_zap(node, datetime.now(UTC).isoformat())

    def _sent_to_zap(self, node: str, now: str) -> None:
        body = {"decision": f"d-{node}", "from": "test", "to": "zap", "timing": "immediate", "rule": "a rule"}
        body |= {"remedy": "", "because": [], "blockers": []}
        self.ledger.append(
            LedgerEntry(f"d-{node}", now, "decision", node, body),
            LedgerEntry(f"t-{node}", now, "transition", node, {"from": "test", "to": "zap", "decision": f"d-{node}"}),
        )

    def start(self, name: str, **more: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", PROGRAM, str(self.root / name), self.url, json.dumps(self.asked | more)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        self.running.append(process)
        return process

    def sharing(self) -> int:
        """Return how many controllers have racks: the first has all until the second is known to it."""
        return len({lease.holder for name, lease in self.ledger.leases().items() if name.startswith("racks/")})

    def begun_by(self, process: subprocess.Popen[str]) -> list[str]:
        return [path.stem for path in self.world.glob("*.begun") if path.read_text() == str(process.pid)]

    def marks(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.world.iterdir() if path.suffix != ".begun"}

    def said(self, kind: str) -> list[str]:
        return [entry.node for entry in self.ledger.entries(kinds=EFFECT_KINDS) if entry.kind == f"effect.{kind}"]


@pytest.fixture
def room(tmp_path: Path, database: str) -> Iterator[Callable[..., Room]]:
    made: list[Room] = []

    def make(**asked: float) -> Room:
        made.append(Room(tmp_path, database, **asked))
        return made[-1]

    yield make
    for process in [process for one in made for process in one.running]:
        process.kill()
        process.communicate()


def until(come: Callable[[], object], *processes: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not come():
        for process in processes:
            assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.1)


@pytest.mark.slow
def test_both_have_racks_and_when_one_is_killed_at_work_the_other_finishes_what_it_had_begun(room: Callable[..., Room]):
    here = room(racks=12, seconds=2.0, at_once=2)
    both = here.start("a"), here.start("b")
    until(lambda: here.sharing() == 2, *both)
    here.send_to_zap()
    until(lambda: any(map(here.begun_by, both)), *both)  # either may take all of it: the queue is theirs together

    busy, other = sorted(both, key=here.begun_by, reverse=True)
    os.kill(busy.pid, signal.SIGKILL)
    busy.wait()
    left, killed = set(here.begun_by(busy)) - set(here.said("verified")), time.monotonic()
    until(lambda: left <= set(here.said("verified")))
    assert time.monotonic() - killed < LEASE_S + 90, "long before the deadline of what it was doing"
    err = other.communicate(timeout=120)[1]

    assert other.returncode == 0, err
    assert set(here.marks().values()) == {"x"}, "no effect twice"
    assert len(here.marks()) == 8, "and none lost"
    assert sorted(here.said("intent")) == sorted(here.said("verified")) == sorted(here.marks())
    assert not here.said("failed") + here.said("unknown")


@pytest.mark.slow
def test_what_a_dead_controller_may_still_be_doing_on_another_machine_is_over_before_another_acts(
    room: Callable[..., Room],
):
    deadline_s = 12.0
    here = room(nodes=1, racks=1, seconds=4.0, deadline_s=deadline_s)
    here.send_to_zap()
    second = here.start("b", waits=True)
    until((here.root / "b" / "ready").exists, second)
    first = here.start("a", elsewhere=True)
    until(lambda: here.begun_by(first), first)
    begun = (here.world / "n0000.begun").stat().st_mtime
    os.kill(first.pid, signal.SIGKILL)

    (here.root / "go").touch()
    err = second.communicate(timeout=120)[1]

    assert second.returncode == 0, err
    assert "on elsewhere may still be at work on it: waits until" in err
    assert time.time() - begun > deadline_s - 2, "it waited for the deadline, not only for the lease"
    assert here.marks() == {"n0000": "x"}
