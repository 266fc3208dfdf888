"""The controller follows a burn-in by what the node says, over a transport that is a list of lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from assay.act.ingest.burn_ins import BurnInFollower
from assay.act.loop.context import ControllerContext
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.schedules.due_slots import SlotTask, list_schedule_lines, make_new_nodes_lines
from assay.act.schedules.slot_runner import SlotResult, list_due_tasks, run_slot_task
from assay.model.entries.effects import BurnInEndedEntry, BurnInOverEntry, BurnInStartedEntry, BurnInWindowEntry
from assay.model.entries.node_entries import TransitionEntry
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.observe.transports.transport import TransportRegistry
from tests.act.quiet_site import Site

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
    plans: list[dict[str, Any]] = field(default_factory=list)
    read: list[int] = field(default_factory=list)

    def transport_for(self, node: Node) -> ToldNode:
        assert node.name == NODE
        return self

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        del node, deadline_s
        said = dict(zip(arguments[::2], arguments[1::2], strict=True))
        self.orders.append(said["--burn-in"])
        if "--plan" in said:
            self.plans.append(json.loads(said["--plan"]))
        since = int(said["--lines-since"].partition(":")[2] or 0)
        new = [line for line in self.lines if line["n"] > since]
        self.read += [line["n"] for line in new[: self.page]] if said["--burn-in"] == "read" else []
        facts = {"id": self.burn_in, "phases": 8, "running": self.running, "t": 0.0, "boot": "b1", "m": 0.0, "log": "a"}
        return {"burn_in": {**facts, "error": "", "lines": new[: self.page], "more": len(new) > self.page}}

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
    site.ledger.append(*(one.make_entry(one.kind, site.desk.now, NODE) for one in entries))
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


def test_an_outvoted_gpu_ends_it_with_its_fault(site: Site, memory: FleetSnapshotCache, far: ToldNode) -> None:
    far.battery(60, RIGHT, RIGHT, WRONG, RIGHT)
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.fault) == ("failed", "gpu.sdc")
    assert ended.reason.startswith("gpu2: battery computed 1 units wrong")
    assert far.orders[-1] == "stop"


def test_another_verdict_ends_it_without_a_fault(site: Site, memory: FleetSnapshotCache, far: ToldNode) -> None:
    far.add(60, unit="memory", s=60, result={"errors": {"value": 3}})
    look(memory, far)
    (ended,) = entries_of(site, BurnInEndedEntry)
    assert (ended.outcome, ended.reason, ended.fault) == ("failed", "memory found 3 wrong bits", "")


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
    assert (far.orders, ended.outcome, ended.reason) == (["stop"], "stopped", "the node is in triage")


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
