"""What decisions ask for is brought about in order; what waits, waits by name; what is unknown is only looked at."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.effects import effect_journal
from assay.act.effects import pending_effect_runner as acting
from assay.act.loop.context import ControllerContext
from assay.adapters.scheduler import CustomerJob, SchedulerNodeStatus, load_scheduler_adapter
from assay.decide.state import decision_and_fault_entries as lines
from assay.declare.loader import load_fleet
from assay.ledger.leases import hold_controller_lock
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

NODE = "n0003"


class Scheduler:
    """A scheduler of one node, in memory."""

    places_jobs = True

    def __init__(self) -> None:
        self.reason, self.running, self.silent = "", [CustomerJob("7", "llama-405b", "customer", "")], False

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        self._answer()
        return dict.fromkeys(nodes, SchedulerNodeStatus(tuple(self.running), self.reason))

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        for node, reason in reasons.items():
            self.cordon(node, reason)

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        self._answer()
        return tuple(self.running)

    def read_cordon_reason(self, node: str) -> str:
        self._answer()
        return self.reason

    def cordon(self, node: str, reason: str) -> None:
        self._answer()
        self.reason = self.reason or f"assay: {reason}"

    def uncordon(self, node: str) -> None:
        self._answer()
        self.reason = ""

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        self.cordon(node, reason)
        self.running = [] if now else self.running

    def _answer(self) -> None:
        if self.silent:
            raise AssayError("slurmctld does not answer")


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


@pytest.fixture
def desk(tmp_path: Path, scheduler: Scheduler) -> ControllerContext:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    store = EvidenceStore(tmp_path / "evidence")
    reports, clock = tmp_path / "reports", SystemClock()
    return ControllerContext(
        replace(load_fleet(ROOT), is_lab=True), ledger, store, clock, tmp_path, reports, lambda _: scheduler
    )


def send(desk: ControllerContext, origin: str, to: str, decision: str = "d1") -> None:
    """Let a decision have moved the node."""
    now = desk.now
    body = {"decision": decision, "from": origin, "to": to, "timing": "immediate", "rule": "a rule", "remedy": ""}
    moved = {"from": origin, "to": to, "decision": decision}
    desk.ledger.append(
        lines.make_enrolled_entry(NODE, "h100-a", origin, desk.clock.now()),
        LedgerEntry(decision, now, "decision", NODE, body | {"because": [], "blockers": []}),
        LedgerEntry(f"{decision}-moved", now, "transition", NODE, moved),
    )


def told(desk: ControllerContext) -> list[tuple[str, str]]:
    return [
        (one.kind.removeprefix("effect."), one.body["action"])
        for one in desk.ledger.entries(NODE, effect_journal.EFFECT_KINDS)
    ]


def test_the_actions_on_arrival_are_done_in_their_order(desk: ControllerContext, scheduler: Scheduler):
    send(desk, "production", "draining")
    acting.run_effects(desk)

    assert [action for kind, action in told(desk) if kind == "verified"] == ["cordon", "drain-now", "collect"]
    assert scheduler.reason.startswith("assay:")
    assert scheduler.running == []


def test_what_is_done_is_not_done_again_by_the_next_pass(desk: ControllerContext):
    send(desk, "production", "draining")
    acting.run_effects(desk)
    first = told(desk)
    acting.run_effects(desk)
    assert told(desk) == first


def test_a_silent_scheduler_leaves_the_effect_unknown_and_its_return_settles_it(
    desk: ControllerContext, scheduler: Scheduler
):
    scheduler.silent = True
    send(desk, "production", "draining")
    acting.run_effects(desk)
    assert told(desk)[-1] == ("unknown", "cordon")
    assert ("intent", "drain-now") not in told(desk), "nothing rests on what is not proved"

    acting.run_effects(desk)
    assert told(desk)[-1] == ("unknown", "cordon"), "silence settles nothing"

    scheduler.silent = False
    acting.run_effects(desk)
    assert told(desk).count(("intent", "cordon")) == 1
    assert told(desk).count(("verified", "cordon")) == 1
    assert told(desk)[-1] == ("verified", "collect")


def test_an_unknown_effect_that_proves_done_is_not_done_a_second_time(desk: ControllerContext, scheduler: Scheduler):
    scheduler.silent = True
    send(desk, "production", "draining")
    acting.run_effects(desk)
    scheduler.silent, scheduler.reason = False, "assay: it had been done after all"

    acting.run_effects(desk)

    assert scheduler.reason == "assay: it had been done after all"
    assert told(desk).count(("verified", "cordon")) == 1


def test_a_waiting_drain_stays_open_names_its_job_and_ends_with_it(desk: ControllerContext, scheduler: Scheduler):
    said: list[str] = []
    entry = desk.policy.states["draining"].model_copy(update={"entry": ["drain"]})
    policy = desk.policy.model_copy(update={"states": desk.policy.states | {"draining": entry}})
    desk = replace(desk, fleet=replace(desk.fleet, policies={policy.name: policy}), progress=said.append)
    send(desk, "production", "draining")
    acting.run_effects(desk)
    acting.run_effects(desk)
    assert told(desk) == [("intent", "drain"), ("done", "drain")]
    assert "under way: waits for job 7 (llama-405b, customer)" in said[-1]

    scheduler.running = []
    acting.run_effects(desk)
    assert told(desk)[-1] == ("verified", "drain")


def test_a_held_node_is_owed_nothing_new(desk: ControllerContext):
    send(desk, "production", "draining")
    desk.ledger.append(LedgerEntry("h1", desk.now, "hold", NODE, {"who": "kim", "reason": "looking"}))
    acting.run_effects(desk)
    assert told(desk) == []


def test_a_second_controller_is_refused_and_told_of_the_first(tmp_path: Path):
    enter = f"hold_controller_lock(__import__('pathlib').Path({str(tmp_path)!r})).__enter__()"
    script = f"from assay.ledger.leases import hold_controller_lock; {enter}"
    with hold_controller_lock(tmp_path):
        second = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert second.returncode
    first = rf"another controller \(process {os.getpid()} on {re.escape(socket.gethostname())}, `.+`, since 20.+ UTC\)"
    assert re.search(first, second.stderr)
    assert "a controller that keeps running acts by itself" in second.stderr
    with hold_controller_lock(tmp_path):
        pass


def test_two_checkouts_with_one_ledger_have_one_controller(tmp_path: Path):
    (tmp_path / "data").mkdir()
    ledger = Ledger.open(tmp_path / "data/ours.sqlite")
    with hold_controller_lock(tmp_path / "one", ledger):
        with pytest.raises(AssayError, match="another controller"), hold_controller_lock(tmp_path / "two", ledger):
            pass
        with hold_controller_lock(tmp_path / "three", Ledger.open(tmp_path / "data/another.sqlite")):
            pass


def test_adapters_are_found_by_entry_point(desk: ControllerContext):
    assert load_scheduler_adapter(desk.fleet.nodes["n0017"]).list_jobs("n0017") == ()
