"""The controller follows a burn-in by what the node says, over a transport that is a list of lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.act.ingest.burn_ins import BurnInFollower, RunningBurnIn, follow_burn_ins
from assay.act.loop.context import ControllerContext
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.schedules.due_slots import SlotTask, list_schedule_lines, make_new_nodes_lines
from assay.act.schedules.slot_runner import SlotResult, list_due_tasks, run_slot_task
from assay.model.entries.effects import (
    BurnInEndedEntry,
    BurnInNoteEntry,
    BurnInOverEntry,
    BurnInStartedEntry,
    BurnInWindowEntry,
    EffectIntentEntry,
)
from assay.model.entries.faults import FaultEntry
from assay.model.entries.node_entries import TransitionEntry
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.specs.burn_in import PART_FAULTS
from assay.model.specs.golden_digests import GoldenKey
from assay.model.timestamps import parse_time
from assay.observe.transports.transport import TransportRegistry
from assay.validate.active.golden import parse_other_nodes
from tests.act.quiet_site import FLEET, Site
from tests.validate.active.battery_runs import KEY, make_branch

NODE = "n0001"
RIGHT, WRONG = "9f3a01bc", "00000001"


@dataclass
class ToldNode:
    """A node that answers from its list of lines, a page at a time, and notes the orders that it gets."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    burn_in: str = "day-1"
    running: bool = True
    page: int = 2
    orders: list[str] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    boot: str = "b1"
    error: str = ""
    plans: list[dict[str, Any]] = field(default_factory=list)
    read: list[int] = field(default_factory=list)

    def transport_for(self, node: Node) -> ToldNode:
        assert node.name == NODE
        return self

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        del node, deadline_s
        said = dict(zip(arguments[::2], arguments[1::2], strict=True))
        self.orders.append(said["--burn-in"])
        if said["--burn-in"] in self.silent:
            raise AssayError("ssh: no route to host")
        if said["--burn-in"] == "stop":
            self.running = False
        if said["--burn-in"] == "start":
            self.plans.append(json.loads(said["--plan"]))
        since = int(said["--lines-since"].partition(":")[2] or 0)
        new = [line for line in self.lines if line["n"] > since]
        self.read += [line["n"] for line in new[: self.page]] if said["--burn-in"] == "read" else []
        t, m = (self.lines[-1][name] if self.lines else 0.0 for name in ("t", "m"))
        facts = {
            "id": self.burn_in,
            "phases": 9,
            "running": self.running,
            "t": t,
            "boot": self.boot,
            "m": m,
            "log": "a",
        }
        return {"burn_in": {**facts, "error": self.error, "lines": new[: self.page], "more": len(new) > self.page}}

    def add(self, t: float, **content: Any) -> None:
        self.lines.append({"n": len(self.lines) + 1, "t": t, "p": "heat", "m": t, **content})

    def battery(self, t: float, *digests: str) -> None:
        devices = [{"index": index, "uuid": f"GPU-{index}", "kind": "H100"} for index in range(len(digests))]
        units = {"gemm.float32.ones": {"0": list(digests)}}
        result = {"devices": {"value": devices}, "ended": {"value": "done"}, "units": {"value": units}}
        self.add(t, unit="battery", s=60, result=result)


@pytest.fixture
def far(site: Site) -> ToldNode:
    """A node in the state `test`, whose burn-in has begun."""
    entries = (TransitionEntry("production", "test", "d"), BurnInStartedEntry("day-1", "day", 24))
    begun = (parse_time(site.desk.now) - timedelta(hours=30)).isoformat()
    site.ledger.append(*(one.make_entry(one.kind, begun, NODE) for one in entries))
    return ToldNode()


def look(memory: FleetSnapshotCache, far: ToldNode) -> Any:
    """Let the controller look once; return the newest results."""
    states = memory.node_states()
    return BurnInFollower(memory, states[NODE], cast("TransportRegistry", far), states).follow()


def entries_of(site: Site, kind: Any) -> list[Any]:
    return [kind.read(entry) for entry in site.ledger.entries(NODE, kinds=[kind.kind])]


def test_what_is_in_the_ledger_is_read_once_and_the_open_window_again(
    site: Site, memory: FleetSnapshotCache, far: ToldNode
) -> None:
    far.add(0, run={"boot": "b1", "serials": {"gpu0": "777"}})
    for t in (60, 120, 1000):
        far.battery(t, *[RIGHT] * 4)
    assert set(look(memory, far)) == {"battery"}
    look(memory, far)
    assert far.read == [1, 2, 3, 4, 4], "two pages, and then only the window that is not over"
    (window,) = entries_of(site, BurnInWindowEntry)
    assert (window.line, window.window["parts"]["battery"]["units"], window.serials) == (3, 2, {"gpu0": "777"})
    assert set(far.orders) == {"read"}


@pytest.mark.parametrize(
    ("second", "is_over"), [({"gpu0": "777"}, False), ({"gpu1": "777"}, False), ({"gpu0": "778"}, True)]
)
def test_hours_of_a_gpu_that_was_exchanged_are_not_those_of_the_new_one(
    site: Site, memory: FleetSnapshotCache, far: ToldNode, second: dict[str, str], is_over: bool
) -> None:
    far.add(0, run={"boot": "b1", "serials": {"gpu0": "777"}})
    for t in (60, 120, 1000):
        far.battery(t, *[RIGHT] * 4)
    look(memory, far)
    far.add(1100, run={"boot": "b2", "serials": second})
    look(memory, far)
    ended = [(entry.outcome, entry.reason) for entry in entries_of(site, BurnInEndedEntry)]
    assert ended == ([("incomplete", "a GPU was exchanged: 778 has none of these hours")] if is_over else [])


@pytest.mark.parametrize(
    ("others", "fault", "reason"),
    [(5, "gpu.sdc", "gpu2: battery gave 1 wrong units"),
     (1, "gpu.sdc.suspect", "battery: gemm.float32.ones, seed 0: 3 of 4")],
)  # fmt: skip
def test_a_wrong_result_ends_it_with_its_fault(
    site: Site, memory: FleetSnapshotCache, far: ToldNode, others: int, fault: str, reason: str
) -> None:
    far.battery(60, RIGHT, RIGHT, WRONG, *[RIGHT] * others)
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.fault) == ("failed", fault)
    assert ended.reason.startswith(reason)
    assert far.orders[-1] == "stop"


def watch(far: ToldNode, group: str, subject: str, counter: str, *counts: int) -> None:
    for t, count in enumerate(counts):
        far.add(30.0 * (t + 1), watch={"gpus": {}, "dimms": {}, group: {subject: {counter: count}}})


NAMED: dict[str, tuple[Callable[[ToldNode], None], str, str]] = {
    "memory": (lambda far: far.add(60, unit="memory", s=60, result={"errors": {"value": 3}}), "host.memory.errors", ""),
    "a collective": (
        lambda far: far.add(60, unit="all_reduce", s=60, result={"wrong": {"value": 3}}),
        "collective.wrong",
        "",
    ),
    "HPL": (lambda far: far.add(60, unit="hpl", s=60, result={"right": {"value": False}}), "gpu.burn.failed", ""),
    "a GPU": (
        lambda far: far.add(60, unit="gpu_burn", s=60, result={"devices": {"5": {"ok": {"value": False}}}}),
        "gpu.burn.failed",
        "gpu5",
    ),
    "a GPU's memory": (lambda far: watch(far, "gpus", "gpu1", "uncorrected", 0, 5), "gpu.memory.uncorrectable", "gpu1"),
    "a remapped row": (lambda far: watch(far, "gpus", "gpu1", "remapped", 0, 1), "gpu.memory.remap", "gpu1"),
    "a link": (lambda far: watch(far, "gpus", "gpu1", "links", 18, 17), "gpu.nvlink.down", "gpu1"),
    "a DIMM": (lambda far: watch(far, "dimms", "DIMM_A1", "uncorrected", 0, 1), "host.dimm.uncorrected", "DIMM_A1"),
    "a vote": (lambda far: far.battery(60, RIGHT, RIGHT, WRONG, *[RIGHT] * 5), "gpu.sdc", "gpu2"),
    "a tie": (lambda far: far.battery(60, RIGHT, RIGHT, WRONG, WRONG), "gpu.sdc.suspect", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_each_verdict_stands_with_its_fault_in_the_ledger(
    site: Site, memory: FleetSnapshotCache, far: ToldNode, name: str
) -> None:
    plant, fault, part = NAMED[name]
    plant(far)
    look(memory, far)
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    (seen,) = entries_of(site, FaultEntry)
    assert (ended.outcome, ended.fault, seen.fault_class) == ("failed", fault, fault)
    assert (seen.subject, seen.severity) == (
        f"{site.desk.fleet.nodes[NODE].subject}/{part}".rstrip("/"),
        site.desk.fleet.fault_catalog.find_treatment(fault).severity,
    )
    assert seen.detail == ended.reason


def test_the_fault_of_a_load_part_is_one_of_its_checks() -> None:
    declared = [check for catalog in FLEET.check_catalogs.values() for check in catalog.checks if check.active]
    for part, fault in PART_FAULTS.items():
        assert fault in {check.fault for check in declared if part in check.parts}, part


@pytest.mark.parametrize(("burn_in", "running"), [("day-1", False), ("", False), ("older", True)])
def test_a_node_that_does_not_run_it_goes_on_where_the_ledger_is(
    memory: FleetSnapshotCache, far: ToldNode, burn_in: str, running: bool
) -> None:
    far.battery(1800, *[RIGHT] * 4)
    far.battery(2800, *[RIGHT] * 4)
    look(memory, far)
    far.burn_in, far.running = burn_in, running
    look(memory, far)
    assert far.orders[-1] == "start"
    assert (far.plans[-1]["id"], far.plans[-1]["done_s"]) == ("day-1", 1800)


def test_a_node_that_has_left_the_state_is_told_to_stop(site: Site, memory: FleetSnapshotCache, far: ToldNode) -> None:
    site.ledger.append(TransitionEntry("test", "triage", "d2").make_entry("left", site.desk.now, NODE))
    assert look(memory, far) == {}
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (far.orders, ended.outcome) == (["read", "stop"], "stopped")
    assert ended.reason == "the node is in triage"


def test_a_tool_without_a_result_ends_it_after_its_first_runs_with_the_words_of_the_tool(
    site: Site, memory: FleetSnapshotCache, far: ToldNode
) -> None:
    refused = {"failed": "assay-load gave no result; it ended with '--after 5166:: write SEED:TEST'"}
    far.add(60, unit="gpu_burn", s=60, result={"devices": {"0": {"ok": {"value": True}}}})
    far.add(120, unit="battery", s=2, result=refused)
    look(memory, far)
    assert not entries_of(site, BurnInEndedEntry), "one run may fail by chance"
    far.add(1000, unit="battery", s=2, result=refused)
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.part, far.orders[-1]) == ("incomplete", "battery", "stop")
    assert ended.reason == (
        f"battery gave no result in its first 2 runs: failed: {refused['failed']}. "
        "Mend it on the node, or take it out of the BurnIn day"
    )


def test_a_tool_that_gave_a_result_before_goes_on(site: Site, memory: FleetSnapshotCache, far: ToldNode) -> None:
    far.battery(60, *[RIGHT] * 4)
    for t in (1000, 1060, 2000):
        far.add(t, unit="battery", s=2, result={"failed": "killed"})
    look(memory, far)
    look(memory, far)
    assert not entries_of(site, BurnInEndedEntry)


def test_a_day_that_is_over_without_its_work_is_incomplete(
    site: Site, memory: FleetSnapshotCache, far: ToldNode
) -> None:
    far.add(60, unit="battery", s=60, result={"absent": "assay-load is not installed"})
    far.add(24 * 3600, end="done")
    far.running = False
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert ended.outcome == "incomplete"
    assert ended.reason.startswith("trial: all_reduce never ran to its end; ")


@pytest.mark.parametrize(
    ("found", "outcome", "reason"),
    [
        (SlotResult("done", "2 nodes ran collectives: nobody named"), "done", "2 nodes ran collectives: nobody named"),
        (
            SlotResult("done", "", {"named_nodes": {NODE: f"{NODE} (slow)"}}),
            "failed",
            f"collectives named {NODE} (slow)",
        ),
        (
            SlotResult("done", "", {"suspected_nodes": {NODE: "the pair was bad"}}),
            "incomplete",
            "collectives could not tell whether it is good: the pair was bad",
        ),
        (AssayError("virtual stands in"), "done", "collectives did not run: virtual stands in"),
    ],
)
def test_a_slot_runs_the_collectives_of_a_burn_in_and_a_later_look_ends_it(
    site: Site, memory: FleetSnapshotCache, far: ToldNode, found: SlotResult | AssayError, outcome: str, reason: str
) -> None:
    context = wait_for_collectives(site, memory)
    look(memory, far)
    assert far.orders == [], "the node has nothing more to tell"
    assert not entries_of(site, BurnInEndedEntry), "its search has not run"
    (task,) = list_new_nodes_due(context)
    assert (str(task), task.burn_ins) == ("collectives-new-nodes of compute", ("day-1",))

    def search(*_: object) -> SlotResult:
        if isinstance(found, AssayError):
            raise found
        return found

    assert run_slot_task(context, task, {"collectives-search": search})
    assert list_new_nodes_due(context) == [], "it runs once"
    memory.catch_up()
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.reason) == (outcome, reason)


def test_a_search_whose_controller_dies_runs_again_and_at_last_ends_without_a_result(
    site: Site, memory: FleetSnapshotCache, far: ToldNode
) -> None:
    context = wait_for_collectives(site, memory)

    def die(*_: object) -> SlotResult:
        raise KeyboardInterrupt

    for attempt in (1, 2, 3):
        (task,) = list_new_nodes_due(context)
        assert task.attempt == attempt
        with pytest.raises(KeyboardInterrupt):
            run_slot_task(context, task, {"collectives-search": die})
    (task,) = list_new_nodes_due(context)
    run_slot_task(context, task, {"collectives-search": die})
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert ended.reason == "collectives did not run: the process that ran it died 3 times"


def test_a_fleet_whose_schedules_search_no_more_ends_it_and_says_so(
    site: Site, memory: FleetSnapshotCache, far: ToldNode
) -> None:
    context = wait_for_collectives(site, memory)
    memory.replace_context(replace(context, fleet=replace(context.fleet, schedules={})))
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.reason) == ("done", "collectives did not run: no schedule searches its fabric")


def wait_for_collectives(site: Site, memory: FleetSnapshotCache) -> ControllerContext:
    """Let the burn-in be over but for collectives."""
    over = BurnInOverEntry("day-1", (), {"gpu0": 51000.0})
    site.ledger.append(over.make_entry("over", site.desk.now, NODE))
    memory.catch_up()
    assert make_new_nodes_lines(list_schedule_lines(memory.context.fleet)).keys() == {"compute"}
    return memory.context


def list_new_nodes_due(context: ControllerContext) -> list[SlotTask]:
    return [task for task in list_due_tasks(context, context.clock.now()) if task.burn_ins]


def plant_vote(far: ToldNode) -> None:
    far.battery(60, RIGHT, RIGHT, WRONG, RIGHT, RIGHT)


def plant_wrong_bits(far: ToldNode) -> None:
    far.add(60, unit="memory", s=60, result={"errors": {"value": 3}})


def plant_damage(far: ToldNode) -> None:
    for t, count in ((30, 0), (60, 5), (90, 5)):
        far.add(t, watch={"gpus": {"gpu1": {"uncorrected": count}}, "dimms": {}})


VERDICTS: dict[str, tuple[Callable[[ToldNode], None], str]] = {
    "a vote": (plant_vote, "gpu2: battery gave 1 wrong units of 1"),
    "a tool": (plant_wrong_bits, "memory found 3 wrong bits"),
    "a counter": (plant_damage, "gpu1: uncorrected memory errors went from 0 to 5 under load"),
}


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize(
    "dies", ["before the ledger", "after the ledger", "at the order", "unanswered", "after the order"]
)
def test_a_verdict_outlives_whatever_dies_and_the_order_to_stop_is_given_until_it_is_answered(
    site: Site, memory: FleetSnapshotCache, far: ToldNode, monkeypatch: pytest.MonkeyPatch, verdict: str, dies: str
) -> None:
    plant, words = VERDICTS[verdict]
    plant(far)
    far.add(1000, unit="memory", s=60, result={"errors": {"value": 0}})  # so that the window with it is over
    append, ask, calls = site.ledger.append, far.ask, list[str]()

    def kill() -> None:
        raise KeyboardInterrupt

    def append_or_die(*entries: Any) -> Any:
        calls.append("append")
        if dies == "before the ledger" or (dies == "after the order" and len(calls) == 2):
            kill()
        added = append(*entries)
        if dies == "after the ledger":
            kill()
        return added

    def ask_or_die(node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        if dies == "at the order" and "stop" in arguments:
            kill()
        return ask(node, arguments, deadline_s)

    monkeypatch.setattr(site.ledger, "append", append_or_die)
    monkeypatch.setattr(memory.context.ledger, "append", append_or_die)
    monkeypatch.setattr(far, "ask", ask_or_die)
    far.silent = {"stop"} if dies == "unanswered" else set()
    for _ in range(2 if dies == "unanswered" else 1):
        with pytest.raises((KeyboardInterrupt, AssayError)):
            look(memory, far)
        memory.catch_up()
    assert bool(entries_of(site, BurnInEndedEntry)) == (dies != "before the ledger")
    monkeypatch.undo()
    far.silent = set()
    memory.catch_up()
    for _ in range(2):
        look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.reason.startswith(words)) == ("failed", True), ended.reason
    assert [note.event for note in entries_of(site, BurnInNoteEntry)] == ["stopped"]
    assert far.orders[-1] == "stop"
    assert not far.running
    record = memory.node_states()[NODE].burn_in
    assert record
    assert not record.must_stop


def test_a_verdict_that_nobody_had_read_is_found_when_the_node_has_left_its_state(
    site: Site, memory: FleetSnapshotCache, far: ToldNode
) -> None:
    plant_wrong_bits(far)
    site.ledger.append(TransitionEntry("test", "triage", "d2").make_entry("left", site.desk.now, NODE))
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.reason) == ("failed", "memory found 3 wrong bits")


def order(site: Site, hours_ago: float) -> None:
    at = (parse_time(site.desk.now) - timedelta(hours=hours_ago)).isoformat()
    intent = EffectIntentEntry("day-1", "burn-in", "d", {}, {}, "")
    site.ledger.append(intent.make_entry("ordered", at, NODE))


@pytest.mark.parametrize(
    ("hours_ago", "node_s", "words"),
    [
        (17 / 60, 6840, "the node claims 1.9 h of load, 0.3 h after it was ordered"),
        (20, 1020, "the node claims 1.9 h of load in 0.3 h of its own time"),
    ],
)
def test_hours_that_cannot_have_passed_are_refused_and_told(
    site: Site, memory: FleetSnapshotCache, far: ToldNode, hours_ago: float, node_s: float, words: str
) -> None:
    order(site, hours_ago)
    far.add(0, run={"boot": "b1", "serials": {}})
    for step in range(1, 115):
        far.add(60.0 * step, unit="gpu_burn", s=60, result={"devices": {"0": {"ok": {"value": True}}}})
        far.lines[-1]["m"] = node_s * step / 114
    far.page = 200
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.hours, far.orders[-1]) == ("incomplete", 0.0, "stop")
    assert words in ended.reason
    assert not entries_of(site, BurnInWindowEntry), "no hour of it counts"


def test_hours_of_a_boot_that_runs_are_not_ahead_of_its_time(
    site: Site, memory: FleetSnapshotCache, far: ToldNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.add(0, run={"boot": "b1", "serials": {}})
    far.battery(3600, *[RIGHT] * 4)
    ask = far.ask

    def ask_young_boot(node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        answer = ask(node, arguments, deadline_s)
        answer["burn_in"]["m"] = 300.0
        return answer

    monkeypatch.setattr(far, "ask", ask_young_boot)
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert "ahead of the node's own time" in ended.reason


def describe(memory: FleetSnapshotCache) -> str:
    memory.catch_up()
    record = memory.node_states()[NODE].burn_in
    assert record
    return record.describe()


def test_status_says_that_a_node_cannot_be_read_and_what_it_did_meanwhile(
    memory: FleetSnapshotCache, far: ToldNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.act.ingest.burn_ins.TransportRegistry", lambda _: far)
    far.battery(60, *[RIGHT] * 4)
    far.battery(1000, *[RIGHT] * 4)
    follow_burn_ins(memory, [NODE])
    far.silent = {"read"}
    for _ in range(3):
        follow_burn_ins(memory, [NODE])
        assert "UTC: ssh: no route to host" in describe(memory)
        assert "not read since" in describe(memory)
    far.silent = set()
    for t in range(2000, 4 * 3600, 900):
        far.battery(t, *[RIGHT] * 4)
    far.page = 100
    follow_burn_ins(memory, [NODE])
    assert "read again, with 3.8 h of load that nobody had read; not read since" in describe(memory)
    assert "burn-in 3.6 of 24 h" in describe(memory)


@pytest.mark.parametrize(
    ("boot", "error", "words"),
    [
        ("b2", "", "the node started again; it went on after 0.5 h"),
        ("b1", "MemoryError", "its supervisor had ended (MemoryError); it went on after 0.5 h"),
    ],
)
def test_status_says_that_the_load_was_started_again(
    memory: FleetSnapshotCache, far: ToldNode, monkeypatch: pytest.MonkeyPatch, boot: str, error: str, words: str
) -> None:
    far.add(0, run={"boot": "b1", "serials": {}})
    far.battery(1800, *[RIGHT] * 4)
    far.battery(2800, *[RIGHT] * 4)
    far.running, far.boot, far.error = False, boot, error
    ask = far.ask

    def ask_willing(node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        far.running = far.running or "start" in arguments
        return ask(node, arguments, deadline_s)

    monkeypatch.setattr(far, "ask", ask_willing)
    look(memory, far)
    assert words in describe(memory)


def test_status_says_that_a_disk_is_full_once(site: Site, memory: FleetSnapshotCache, far: ToldNode) -> None:
    far.battery(60, *[RIGHT] * 4)
    far.error = "the disk with its journal is full"
    for _ in range(3):
        look(memory, far)
    assert "UTC: the disk with its journal is full" in describe(memory)
    assert len(entries_of(site, BurnInNoteEntry)) == 1


def test_how_the_node_was_before_the_load_is_kept_while_there_is_no_result(site: Site) -> None:
    start = parse_time(site.desk.now)
    earlier, later = start - timedelta(hours=1), start + timedelta(hours=1)
    passive, before, rebooted = (
        EvidenceDocument(NODE, at, {"probe": {"host": {"boot_id": {"value": boot}, "kernel": {"value": kernel}}}})
        for at, boot, kernel in ((later, "b1", "busy"), (earlier, "b1", "idle"), (later, "b2", "busy again"))
    )
    first = RunningBurnIn(start.isoformat(), {}).add_to(passive, before)
    second = RunningBurnIn(start.isoformat(), {"memory": {"errors": {"value": 0}}}).add_to(passive, first)
    assert second.channels["before"]["host"]["kernel"] == {"value": "idle"}
    third = RunningBurnIn(start.isoformat(), {}).add_to(rebooted, second)
    assert third.channels["before"]["host"]["kernel"] == {"value": "busy again"}, "a restart alone fails no check"
    assert "active" not in first.channels


def test_a_node_that_restarts_again_under_its_load_has_failed(
    site: Site, memory: FleetSnapshotCache, far: ToldNode
) -> None:
    far.page = 20
    for boot, t in (("b1", 0), ("b2", 1800), ("b3", 3600)):
        far.add(t, run={"boot": boot, "serials": {}})
        far.battery(t + 60, *[RIGHT] * 4)
        far.battery(t + 1000, *[RIGHT] * 4)
        far.boot = boot
        look(memory, far)
        memory.catch_up()
        assert bool(entries_of(site, BurnInEndedEntry)) == (boot == "b3")
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.reason) == ("failed", "the node restarted 2 times under its load")


class ToldRack(dict[str, ToldNode]):
    """Nodes that answer, by name."""

    def transport_for(self, node: Node) -> ToldNode:
        return self[node.name]


RACK = [f"n{number:04}" for number in range(1, 9)]


@pytest.fixture
def rack(site: Site, memory: FleetSnapshotCache, far: ToldNode, monkeypatch: pytest.MonkeyPatch) -> ToldRack:
    """Eight trays of four GPUs in the state `test`, of which the first seven stand in a rack that is one machine."""
    begun = (parse_time(site.desk.now) - timedelta(hours=30)).isoformat()
    for name in RACK[1:]:
        entries = (TransitionEntry("production", "test", "d"), BurnInStartedEntry("day-1", "day", 24))
        site.ledger.append(*(one.make_entry(f"{one.kind} {name}", begun, name) for one in entries))
    memory.catch_up()
    told = ToldRack({name: ToldNode() for name in RACK})
    told[NODE] = far
    monkeypatch.setattr("assay.act.ingest.burn_ins.TransportRegistry", lambda _: told)
    monkeypatch.setattr("assay.act.ingest.burn_ins.find_nvlink_domains", lambda _: dict.fromkeys(RACK[:7], "lab1 r1"))
    return told


def compute(rack: ToldRack, digests: dict[str, list[str]]) -> None:
    """Let every tray compute one unit with one key: the right digest, where nothing else is said."""
    for name, node in rack.items():
        units = {"gemm.float32.ones": {"1200": digests.get(name, RIGHT)}}
        node.add(0, run={"boot": "b1", "serials": {}})
        node.add(1260, unit="battery", s=60, result=make_branch(units, ("NVIDIA GB200",) * 4))


def read_ends(site: Site) -> dict[str, BurnInEndedEntry]:
    return {one.node: BurnInEndedEntry.read(one) for one in site.ledger.entries(kinds=[BurnInEndedEntry.kind])}


@pytest.mark.parametrize("split", [[WRONG, RIGHT, RIGHT, RIGHT], [WRONG, RIGHT, WRONG, RIGHT]])
def test_a_rack_in_its_burn_in_votes_as_one_and_names_the_gpus_of_a_tray(
    site: Site, memory: FleetSnapshotCache, rack: ToldRack, split: list[str]
) -> None:
    compute(rack, {"n0003": split, "n0008": split})
    running = follow_burn_ins(memory, RACK)
    ends = read_ends(site)
    assert set(ends) == {"n0003", "n0008"}
    assert (ends["n0003"].outcome, ends["n0003"].fault) == ("failed", "gpu.sdc")
    assert ends["n0003"].reason.startswith("gpu0: battery gave 1 wrong units of 1")
    assert "by 24 GPUs of n0001, n0002, n0004..n0007" in ends["n0003"].reason
    assert ends["n0008"].fault == "gpu.sdc.suspect", "it stands elsewhere, and four GPUs alone cannot tell"
    assert rack["n0003"].orders[-1] == "stop"
    counted = parse_other_nodes(running["n0003"].others["other_nodes"]["value"])
    assert counted.digests == {("gemm.float32.ones", "1200"): {RIGHT: 24}}, "checks judge alike"


def test_a_tray_whose_gpus_are_all_wrong_alike_is_the_suspect_of_its_rack(
    site: Site, memory: FleetSnapshotCache, rack: ToldRack
) -> None:
    compute(rack, {"n0003": [WRONG] * 4, "n0008": [WRONG] * 4})
    follow_burn_ins(memory, RACK)
    ((name, ended),) = read_ends(site).items()
    assert (name, ended.fault) == ("n0003", "gpu.sdc.suspect")
    assert "4 of 4 GPUs computed" in ended.reason


def test_a_tray_that_does_not_answer_leaves_the_vote_to_the_others(
    site: Site, memory: FleetSnapshotCache, rack: ToldRack
) -> None:
    compute(rack, {"n0003": [WRONG, RIGHT, WRONG, RIGHT]})
    rack["n0001"].silent = {"read"}
    follow_burn_ins(memory, RACK)
    assert "by 20 GPUs of n0002, n0004..n0007" in read_ends(site)["n0003"].reason


def test_golden_digests_decide_in_a_burn_in_as_in_checks(
    memory: FleetSnapshotCache, far: ToldNode, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    far.add(60, unit="battery", s=60, result=make_branch({"gemm": {"7": [WRONG, RIGHT, WRONG, RIGHT]}}, ("H",) * 4))
    key = GoldenKey(gpu="H", **KEY)
    golden = SimpleNamespace(computed_by=key, list_digests=lambda: {("gemm", "7"): RIGHT})
    monkeypatch.setattr(type(memory.context.fleet), "list_golden", lambda *_: [golden])
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert ended.fault == "gpu.sdc"
    assert "and by the golden digest" in ended.reason
