"""The loop that goes on: it answers what others store at once, survives trouble, and follows the fleet's files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.act.ingest import right_clock
from assay.act.ingest.silent_nodes import list_sources, open_last_seen
from assay.act.loop import reconcile_loop as looping
from assay.act.loop.context import ControllerContext
from assay.act.loop.fleet_reload import FleetReloader
from assay.act.loop.rack_leases import hold_rack_assignment
from assay.act.loop.reconcile_loop import LoopListener, ReconcileLoop
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import CustomerJob, SchedulerNodeStatus
from assay.decide.faults.detection import FaultObservation
from assay.decide.state import decision_and_fault_entries
from assay.declare import yaml as declared_yaml
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.cordon_ownership import prefix_reason
from assay.model.entries.node_entries import TransitionEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

NODE = "n0003"


class Far:
    """A scheduler in memory."""

    places_jobs = True

    def __init__(self) -> None:
        self.cordons: dict[str, str] = {}
        self.running: dict[str, tuple[CustomerJob, ...]] = {}

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        return self.running.get(node, ())

    def read_cordon_reason(self, node: str) -> str:
        return self.cordons.get(node, "")

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        return {node: SchedulerNodeStatus(self.list_jobs(node), self.read_cordon_reason(node)) for node in nodes}

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        for node, reason in reasons.items():
            self.cordons.setdefault(node, prefix_reason(reason))

    def uncordon(self, node: str) -> None:
        self.cordons.pop(node, None)


class Running:
    """A loop in a thread over the example fleet, in production and just looked at; `said` and `lines` are its words."""

    def __init__(self, root: Path, place: Path | str) -> None:
        self.root, self.place, self.far = root, place, Far()
        self.said, self.lines, self.stop = list[str](), list[LedgerEntry](), threading.Event()
        home, fleet = root / ".assay", load_fleet(root)
        self.ledger = Ledger.open(place)
        store = EvidenceStore(home / "evidence")
        self.desk = ControllerContext(
            fleet, self.ledger, store, SystemClock(), home, root / "reports", lambda _: self.far
        )
        now = datetime.now(UTC)
        enrolled = (
            decision_and_fault_entries.make_enrolled_entry(node.name, node.pool, "production", now)
            for node in fleet.nodes.values()
        )
        self.ledger.append(*enrolled)
        told = {(node.name, source): True for node in fleet.nodes.values() for source in list_sources(node)}
        open_last_seen(self.desk).record_polls(told, now)
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()
        self.until(lambda: any("looks after" in line for line in self.said))

    def _run(self) -> None:
        current = FleetReloader(
            self.root, lambda cache: load_fleet(self.root, cache=cache), self.desk.clock, self.said.append
        )
        told = LoopListener(self.lines.extend, self.said.append)
        with hold_rack_assignment(self.desk) as share:
            ReconcileLoop(
                FleetSnapshotCache(self.desk), share, current, lambda fleet: list(fleet.nodes), told, 86400.0
            ).run(self.stop)

    def end(self) -> None:
        self.stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        self.ledger.close()

    def elsewhere(self, *entries: LedgerEntry) -> None:
        """Append by another connection, as another process does."""
        other = Ledger.open(self.place)
        other.append(*entries)
        other.close()

    def fault(self, name: str = NODE, what: str = "gpu.thermal") -> LedgerEntry:
        now = datetime.now(UTC)
        treatment, subject = (
            self.desk.fleet.fault_catalog.find_treatment(what),
            f"{self.desk.fleet.nodes[name].subject}/gpu0",
        )
        seen = FaultObservation(
            f"f-{name}", name, what, subject, treatment.severity, treatment.blame, treatment.remedy, 1,
            format_time(now), format_time(now), "as planted", {"kernel": "b:1"}, (format_time(now),),
        )  # fmt: skip
        return decision_and_fault_entries.make_fault_entry(seen, now)

    def until(self, true: Callable[[], Any]) -> None:
        end = time.monotonic() + 60
        while not true():
            assert time.monotonic() < end, (self.said, [entry.kind for entry in self.lines])
            time.sleep(0.02)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for folder in ("inventory", "specs", "suites", "playbooks"):
        shutil.copytree(ROOT / folder, tmp_path / "fleet" / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(tmp_path / "fleet" / "specs" / "schedules")
    return tmp_path / "fleet"


@pytest.fixture(params=["sqlite", "postgresql"])
def running(request, fleet: Path) -> Iterator[Running]:
    server = request.param == "postgresql"
    made = Running(fleet, request.getfixturevalue("database") if server else fleet / ".assay" / "ledger.sqlite")
    made.start()
    yield made
    made.end()


def test_a_fault_that_another_process_stores_is_answered_at_once_and_told_line_by_line(running: Running):
    running.far.running[NODE] = (CustomerJob("7", "llama", "customer", ""),)
    running.elsewhere(running.fault())
    running.until(lambda: running.far.cordons.get(NODE))
    running.until(lambda: any(one.kind == "effect.verified" for one in running.lines))
    told = [one.kind for one in running.lines if one.node == NODE]
    assert told[:4] == ["fault", "decision", "effect.intent", "effect.done"]
    word = {"who": "ann", "reason": "the fan was off by hand"}
    running.elsewhere(LedgerEntry("h1", format_time(datetime.now(UTC)), "hold", NODE, word))
    running.until(lambda: "hold" in [one.kind for one in running.lines])
    assert all("tries again" not in line for line in running.said)


def test_a_technicians_word_lets_the_node_be_looked_at_at_once(fleet: Path, monkeypatch):
    running, looked = Running(fleet, fleet / ".assay" / "ledger.sqlite"), list[str]()
    monkeypatch.setattr(looping, "observe_nodes", lambda _, names, **__: looked.extend(names) or [])
    running.start()
    word = {"ticket": "0123456789abcdef", "title": "a cable", "who": "tom", "note": "reseated"}
    running.elsewhere(LedgerEntry("d1", format_time(datetime.now(UTC)), "ticket.done", NODE, word))
    running.until(lambda: looked)
    running.end()
    assert looked == [NODE]


def test_nothing_is_judged_by_files_that_decisions_do_not_use_yet(fleet: Path, monkeypatch):
    running, asked = Running(fleet, fleet / ".assay" / "ledger.sqlite"), list[tuple[list[str], bool]]()

    def observe(_, names: list[str], may_judge: Callable[[], bool]) -> list[str]:
        if not asked:
            policy = fleet / "specs" / "lifecycle" / "default.yaml"
            policy.write_text(policy.read_text().replace("settle_minutes: 2", "settle_minutes: 3"))
        asked.append((names, may_judge()))
        return []

    monkeypatch.setattr("assay.act.schedules.poll_schedule.MAX_GAP_S", 0.1)
    monkeypatch.setattr(looping, "observe_nodes", observe)
    running.start()
    word = {"ticket": "0123456789abcdef", "title": "a cable", "who": "tom", "note": "reseated"}
    running.elsewhere(LedgerEntry("d1", format_time(datetime.now(UTC)), "ticket.done", NODE, word))
    running.until(lambda: len(asked) > 1)
    running.end()
    assert asked == [([NODE], False), ([NODE], True)], "the node is looked at again once the files are in use"


READ_AT_ONCE = ("seatrial", "test", "production", "confirmation", "triage")
READ_LATER = ("draining", "zap", "production-reboot", "production-netboot")
"""States that a node only passes, or that begin with a repair."""


def test_a_node_is_read_at_once_where_its_new_state_can_use_it(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, looked = Running(fleet, fleet / ".assay" / "ledger.sqlite"), list[str]()
    monkeypatch.setattr(looping, "observe_nodes", lambda _, names, **__: looked.extend(names) or [])
    monkeypatch.setattr(looping, "record_decisions", lambda *_, **__: 0)
    running.start()
    states, now = READ_AT_ONCE + READ_LATER, format_time(datetime.now(UTC))
    nodes = dict(zip(running.desk.fleet.nodes, states, strict=False))
    moves = [
        TransitionEntry("production", state, "d1").make_entry(f"t-{node}", now, node) for node, state in nodes.items()
    ]
    running.elsewhere(*reversed(moves))
    running.until(lambda: len(looked) >= len(READ_AT_ONCE))
    running.end()
    assert len(nodes) == len(states)
    assert sorted(nodes[node] for node in looked) == sorted(READ_AT_ONCE)


def test_trouble_is_told_once_and_what_came_meanwhile_is_answered_when_it_is_over(fleet: Path, monkeypatch):
    running, broken = Running(fleet, fleet / ".assay" / "ledger.sqlite"), threading.Event()
    decide, failed = looping.record_decisions, list[str]()

    def failing(*asked: Any, **more: Any) -> int:
        if broken.is_set():
            failed.append("once")
            raise AssayError("the disk is full")
        return decide(*asked, **more)

    monkeypatch.setattr(looping, "record_decisions", failing)
    broken.set()
    running.start()
    running.far.running[NODE] = (CustomerJob("7", "llama", "customer", ""),)
    running.elsewhere(running.fault())
    running.until(lambda: len(failed) >= 2)
    assert running.said.count("the disk is full; tries again") == 1
    broken.clear()
    running.until(lambda: running.far.cordons.get(NODE))
    running.until(lambda: "works again" in running.said)
    running.end()


def test_a_wrong_clock_is_told_before_the_first_decision_and_nothing_is_done_until_it_is_right(
    fleet: Path, monkeypatch
):
    running, is_wrong, looks = Running(fleet, fleet / ".assay" / "ledger.sqlite"), threading.Event(), list[bool]()

    def read_agents(_: ControllerContext) -> dict[str, float]:
        looks.append(is_wrong.is_set())
        return dict.fromkeys(("n0003", "n0004", "n0005"), -90000.0 if is_wrong.is_set() else 0.0)

    monkeypatch.setattr(right_clock, "read_agent_clocks", read_agents)
    monkeypatch.setattr(looping, "DECISION_INTERVAL_S", 0.2)
    monkeypatch.setattr(looping, "TICKET_INTERVAL_S", 86400.0)
    is_wrong.set()
    running.elsewhere(running.fault())
    running.start()
    running.until(lambda: len(looks) > 3)
    problem = "the clock of this machine is 25 h ahead of the clocks of 3 of 3 BMCs and agents: "
    assert sum(problem in line for line in running.said) == 1
    assert not running.far.cordons
    assert not [entry for entry in running.lines if entry.kind.startswith(("effect", "decision"))]
    is_wrong.clear()
    running.until(lambda: running.far.cordons.get(NODE))
    running.end()


def test_the_fleets_files_are_followed_and_a_broken_spec_is_refused(fleet: Path, monkeypatch):
    monkeypatch.setattr(looping, "RELOAD_INTERVAL_S", 0.1)
    running = Running(fleet, fleet / ".assay" / "ledger.sqlite")
    running.start()
    policy = fleet / "specs" / "lifecycle" / "default.yaml"
    good = policy.read_text()
    policy.write_text(good.replace("settle_minutes: 2", "settle_minutes: soon"))
    running.until(lambda: any("cannot be used; goes on with what was read before" in line for line in running.said))
    policy.write_text(good.replace("settle_minutes: 2", "settle_minutes: 3"))
    running.until(lambda: any("read the fleet again (no new commit)" in line for line in running.said))
    running.end()
    assert len(running.said) == 3


def test_what_changed_is_read_once_to_be_used_and_to_be_checked(fleet: Path, monkeypatch: pytest.MonkeyPatch):
    said, parsed = list[str](), list[bytes]()
    parse = declared_yaml.parse_yaml
    monkeypatch.setattr(
        declared_yaml, "parse_yaml", lambda content, *more: parsed.append(content) or parse(content, *more)
    )
    current = FleetReloader(fleet, lambda cache: load_fleet(fleet, cache=cache), SystemClock(), said.append)
    current.read_again()
    assert current.reload_if_changed() is not None
    own = [path.read_bytes() for path in (fleet / "specs").rglob("*.yaml")]
    assert own
    assert {parsed.count(content) for content in own} == {1}


def test_what_is_no_mistake_of_a_file_but_of_meaning_is_refused_too(fleet: Path):
    said: list[str] = []
    current = FleetReloader(fleet, lambda cache: load_fleet(fleet, cache=cache), SystemClock(), said.append)
    assert current.reload_if_changed() is None
    (inventory,) = (path for path in (fleet / "inventory").glob("*.yml") if "profile: managed" in path.read_text())
    good = inventory.read_text()
    inventory.write_text(good.replace("profile: managed", "profile: manged"))
    assert current.reload_if_changed() is None
    assert not current.is_usable
    assert "`assay check` lists every problem" in said[0]
    assert current.reload_if_changed() is None
    assert len(said) == 1
    inventory.write_text(good + "\n")
    assert current.reload_if_changed() is not None
    assert current.is_usable


def test_a_lab_goes_on_with_what_it_may_start_with(fleet: Path):
    said: list[str] = []
    read = lambda cache: replace(load_fleet(fleet, cache=cache), is_lab=True)  # noqa: E731 — as a lab's overlay makes it
    current = FleetReloader(fleet, read, SystemClock(), said.append)
    (inventory,) = (path for path in (fleet / "inventory").glob("*.yml") if "profile: managed" in path.read_text())
    inventory.write_text(inventory.read_text().replace("profile: managed", "profile: manged"))
    assert current.reload_if_changed() is not None
    assert (current.is_usable, said) == (True, [])


@pytest.mark.slow
def test_the_command_ends_well_when_it_is_told_to(fleet: Path):
    made = Running(fleet, fleet / ".assay" / "ledger.sqlite")
    made.ledger.close()
    command = [sys.executable, "-m", "assay", "reconcile", "--interval", "86400", "--fleet", str(fleet)]
    environment = {**os.environ, "ASSAY_BMC": "root:calvin"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr
    said = [process.stderr.readline() for _ in range(2)]
    assert "looks after 20 nodes" in said[1], said
    process.send_signal(signal.SIGTERM)
    said, errors = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert "stopped; the next start continues unfinished effects" in errors
    assert "Traceback" not in errors


def test_a_second_controller_is_refused_on_a_ledger_in_a_file(fleet: Path):
    running = Running(fleet, fleet / ".assay" / "ledger.sqlite")
    running.start()
    with pytest.raises(AssayError, match="another controller"), hold_rack_assignment(running.desk):
        pass
    running.end()


def test_what_waits_for_its_time_is_looked_at_without_news(fleet: Path, monkeypatch):
    monkeypatch.setattr(looping, "DECISION_INTERVAL_S", 0.1)
    running = Running(fleet, fleet / ".assay" / "ledger.sqlite")
    running.far.running[NODE] = (CustomerJob("7", "llama", "customer", ""),)
    running.start()
    running.elsewhere(running.fault())
    running.until(lambda: running.far.cordons.get(NODE))
    assert FleetSnapshotCache(running.desk).node_states()[NODE].state == "production"
    del running.far.running[NODE]
    running.until(lambda: any(one.kind == "transition" for one in running.lines))
    running.end()
