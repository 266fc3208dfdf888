"""With a real slurmctld: no job starts that would run into planned work; only our own reservation for it is changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.act.orders.operations import RESERVED, reserve_windows
from assay.act.rollouts.rollout_advance import list_first_waves
from assay.adapters.scheduler import PlannedWindow, ReservesWindows
from assay.adapters.slurm import client
from assay.adapters.slurm.adapter import SlurmScheduler
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.decide.state.operation_record import OPERATIONS
from assay.ledger.ledger_reader import read_projection
from assay.model.decision import DecisionCause
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.node_entries import (
    DecisionEntry,
    MoveEntry,
    OperationDeferredEntry,
    OperationDroppedEntry,
    OperationPlannedEntry,
    OrderedOperation,
)
from assay.model.errors import AssayError
from assay.model.specs.trust_rules import TrustRules
from assay.model.timestamps import format_time
from tests.act.rollouts.rolling_fleet import RollingFleet
from tests.support.slurm_cluster import needs_slurm, said, until
from tests.support.slurm_room import adapter, context, job, state, submitted
from tests.support.slurm_room import node as node_of

pytestmark = needs_slurm
HOUR = 3600
HOURS = timedelta(hours=2)


def window(*nodes: str, begins_s: int = 2 * HOUR) -> PlannedWindow:
    now = int(time.time())
    return PlannedWindow(nodes, now + begins_s, now + begins_s + HOUR)


def reservation(ident: str) -> dict[str, str]:
    """Return the fields of an operation's reservation, as Slurm shows them; none if there is none."""
    line = said(
        "env", "SLURM_TIME_FORMAT=%s", "scontrol", "--oneliner", "show", "reservation", f"assay-planned-{ident}"
    )
    return dict(word.partition("=")[::2] for word in line.split()) if line.startswith("ReservationName=") else {}


def is_running(number: str) -> bool:
    return said("squeue", "--noheader", f"--job={number}", "--format=%T") == "RUNNING"


def test_jobs_that_would_run_into_the_window_wait_and_others_start(take: Callable[[], str]):
    first, second = take(), take()
    before = job("before", first, 600)
    wanted = window(first, second)
    assert isinstance(adapter(), ReservesWindows)
    assert adapter().reserve_windows({"op1": wanted}) == {}
    seen = reservation("op1")
    assert (int(seen["StartTime"]), int(seen["EndTime"])) == (wanted.starts_at, wanted.ends_at)
    assert {"MAINT", "IGNORE_JOBS"} <= set(seen["Flags"].split(","))
    long, short = submitted("long", second, 1, "--time=300"), job("short", second, 600, "--time=60")
    assert not is_running(long)
    assert is_running(before)
    assert is_running(short)
    assert adapter().read_statuses([second])[second].cordon == "", "it is no cordon"
    assert adapter().reserve_windows({"op1": replace(wanted, nodes=())}) == {}
    assert reservation("op1") == {}
    until(lambda: not said("squeue", "--noheader", f"--job={long}", "--states=PENDING"))


def test_a_window_is_reserved_once(node: str, monkeypatch: pytest.MonkeyPatch):
    wanted = window(node)
    adapter().reserve_windows({"op2": wanted})
    orders: list[str] = []
    scheduler = adapter()
    monkeypatch.setattr(type(scheduler.client), "run_scontrol", lambda _, given: orders.extend(given))
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    assert scheduler.reserve_windows({"op2": wanted, "op-without": window()}) == {}
    assert orders == []
    monkeypatch.undo()
    adapter().reserve_windows({"op2": window()})


@pytest.mark.parametrize("begins_s", [2 * HOUR, -60], ids=["waits", "has begun"])
def test_a_deferred_window_moves_and_loses_nodes(take: Callable[[], str], begins_s: int):
    first, second = take(), take()
    adapter().reserve_windows({"op3": window(first, second, begins_s=begins_s)})
    fewer = window(first, begins_s=begins_s)
    assert adapter().reserve_windows({"op3": fewer}) == {}
    assert reservation("op3")["Nodes"] == first
    later = window(first, second, begins_s=5 * HOUR)
    assert adapter().reserve_windows({"op3": later}) == {}
    assert int(reservation("op3")["StartTime"]) == later.starts_at
    until(lambda: state(first) == "idle")
    adapter().reserve_windows({"op3": window()})


def test_others_reservations_and_our_cordon_stay(node: str):
    adapter(slurm_cordon="reservation").cordon(node, "gpu.missing")
    for name in ("assay-planned-other", "bobs"):
        options = ("users=root", "starttime=now+60", "duration=60", "flags=maint", f"nodes={node}")
        said("scontrol", "create", f"reservationname={name}", *options)
    assert adapter().reserve_windows({"op4": window(node)}) == {}
    assert adapter().reserve_windows({"op4": window()}) == {}
    left = said("scontrol", "--oneliner", "show", "reservation")
    for name in (f"assay-suspicious-{node}", "assay-planned-other", "bobs"):
        assert f"ReservationName={name} " in left
        said("scontrol", "delete", f"reservation={name}")


def test_what_slurm_refuses_holds_up_no_other(node: str):
    wishes = {"op5": window("n9999"), "op6": window(node)}
    problems = adapter().reserve_windows(wishes)
    assert set(problems) == {"op5"}
    assert "Invalid node name specified" in problems["op5"]
    assert reservation("op6")["Nodes"] == node
    adapter().reserve_windows({"op6": window()})


def test_an_order_that_slurm_forgot_is_found(node: str, monkeypatch: pytest.MonkeyPatch):
    scheduler: SlurmScheduler = adapter()
    monkeypatch.setattr(type(scheduler.client), "run_scontrol", lambda *_: None)
    assert scheduler.reserve_windows({"op7": window(node)}) == {"op7": "Slurm does not show its reservation"}


def test_a_slurm_that_does_not_answer_is_an_error(tmp_path):
    with pytest.raises(AssayError):
        adapter(slurm_conf=str(tmp_path / "nowhere.conf")).reserve_windows({"op8": window("n0001")})


class Site:
    """One node, an operation planned on it, and controllers that are killed after each round."""

    def __init__(self, folder: Path, name: str, trust: str = "act", **more: Any) -> None:
        self.name, made = name, context(folder, name)
        policy = made.fleet.policy.model_copy(update={"trust": TrustRules.model_validate({"fleet": trust})})
        fleet = replace(made.fleet, nodes={name: node_of(name, **more)}, policies={policy.name: policy})
        self.context = replace(made, fleet=fleet)
        at = self.context.clock.now()
        self.ident = f"op-{name}"
        self.start, self.end = at + timedelta(hours=3), at + timedelta(hours=5)
        window = format_time(self.start), format_time(self.end)
        self.say(OperationPlannedEntry(self.ident, "reboot", "k", "production-reboot", "ann", "why", (name,), *window))

    def say(self, entry: EntryContent, of: str = "") -> None:
        ident = f"{entry.kind}-{self.context.ledger.head()}"
        self.context.ledger.append(entry.make_entry(ident, format_time(self.context.clock.now()), of))

    def turn(self) -> tuple[str, str]:
        """Let the controller take one round; return the operation's state and text."""
        reserve_windows(self.context)
        (each,) = read_projection(self.context.ledger, OPERATIONS).operations[self.ident].nodes
        return each.state, each.text

    def answers(self) -> list[str]:
        return [entry.body["reason"] for entry in self.context.ledger.entries(kinds=["operation.reserved"])]


@pytest.fixture
def site(node: str, tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, node)
    yield made
    said("scontrol", "delete", f"reservation=assay-planned-{made.ident}")


def test_planned_work_is_reserved_until_it_begins(site: Site):
    for _ in range(2):
        assert site.turn() == ("planned", RESERVED)
    assert int(reservation(site.ident)["StartTime"]) == int(site.start.timestamp())
    site.say(OperationDeferredEntry(site.ident, "ann", "why", *map(format_time, (site.end, site.end + HOURS))))
    assert site.turn() == ("planned", RESERVED)
    assert site.answers() == [RESERVED] * 2, "each answer is recorded once"
    assert int(reservation(site.ident)["StartTime"]) == int(site.end.timestamp())
    asked = OrderedOperation(site.ident, "reboot", "k")
    site.say(MoveEntry("production-reboot", "ann", "why", operation=asked), site.name)
    assert site.turn() == ("accepted", "")
    assert reservation(site.ident)["Nodes"] == site.name, "it has not left yet"
    order = site.context.ledger.entries(kinds=["move"])[0].id
    causes = (DecisionCause("order", order, "why"),)
    site.say(
        DecisionEntry("d1", "production", "production-reboot", "immediate", "file:1 rule", "", causes, ()), site.name
    )
    assert site.turn()[0] == "running"
    assert reservation(site.ident) == {}


def test_cancelled_work_is_reserved_no_more_even_after_a_kill(site: Site):
    site.turn()
    site.say(OperationDroppedEntry(site.ident, "ann", "not needed"))
    assert reservation(site.ident), "killed before the round"
    assert site.turn() == ("cancelled", "not needed")
    assert reservation(site.ident) == {}


def test_work_whose_window_is_over_is_not_reserved_and_asks_slurm_nothing(site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SlurmScheduler, "reserve_windows", lambda *_: pytest.fail("it asks Slurm"))
    past = site.start - timedelta(days=1)
    site.say(OperationDeferredEntry(site.ident, "ann", "why", *map(format_time, (past, past + HOURS))))
    assert site.turn() == ("planned", "")


def test_what_slurm_refuses_is_the_operations_text_once(node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    refused = Site(tmp_path, "n9999")
    first, again = refused.turn(), refused.turn()
    assert first == again
    assert "scontrol failed: Error creating the reservation: Invalid node name specified" in first[1]
    assert refused.answers() == [first[1]]
    monkeypatch.setattr(client, "SLURM_TIMEOUT_S", 0.001)
    assert refused.turn()[1].endswith("slurmctld does not answer: scontrol: no answer within 0.001 s"), "it goes on"


def test_a_node_that_assay_only_watches_is_not_reserved(node: str, tmp_path: Path):
    watched = Site(tmp_path, node, trust="watch")
    assert watched.turn() == ("planned", "")
    assert reservation(watched.ident) == {}


def test_the_first_wave_of_a_rollout_is_reserved_until_it_leaves(take: Callable[[], str], tmp_path: Path):
    first, second = take(), take()
    rolling = RollingFleet(tmp_path / "fleet", tmp_path)
    inventory = (
        rolling.git.text("inventory/pool.yml").replace("    n1:", f"    {first}:").replace("    n2:", f"    {second}:")
    )
    rolling.git.write("inventory/pool.yml", inventory)
    at = rolling.clock.at = datetime.now(UTC)
    entries = (make_enrolled_entry(name, "pool-a", "production", at, f"S{n}") for n, name in ((1, first), (2, second)))
    rolling.ledger.append(*entries)
    rolling.add_rules("{lead_hours: 2}")
    rolling.git.commit()
    rolling.take_up()
    rolling.set_version("2")
    rolling.turn()

    def round_of_controller() -> dict[str, str]:
        made = rolling.context()
        ours = replace(made, workloads=lambda node: adapter() if node.name in (first, second) else rolling.far)
        reserve_windows(ours, list(list_first_waves(ours)))
        return reservation(rolling.rollout.id)

    seen = round_of_controller()
    [wave] = seen["Nodes"].split(",")
    assert int(seen["StartTime"]) == int((datetime.fromisoformat(rolling.rollout.started_at) + HOURS).timestamp())
    assert rolling.rollout.members[wave].reserved == RESERVED
    long, short = submitted("long", wave, 1, "--time=300"), job("short", wave, 600, "--time=60")
    assert (is_running(long), is_running(short)) == (False, True)
    rolling.clock.at += HOURS
    rolling.turn()
    assert rolling.kinds().count("move") == 1
    assert round_of_controller() == {}
    rolling.ledger.close()
