"""How nodes held over some time: each figure is counted by hand from a short history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from assay.decide.state.node_state import NodeState, TransitionRecord
from assay.declare.loader import load_fleet
from assay.model.faults.fault_record import FaultRecord
from assay.model.fleet import Fleet
from assay.model.timestamps import format_time, parse_time
from assay.tell.views.pool_delivery import ORDERED, FirstPass, Reliability, StageTime, measure_node, sum_reliability
from tests.support.places import ROOT

BEGIN = parse_time("2026-11-01T00:00:00+00:00")
END = BEGIN + timedelta(hours=100)
XID = "gpu.xid.79"
RULE = "specs/lifecycle/default.yaml:401 a broken GPU"


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(ROOT)


def at(hour: float) -> str:
    return format_time(BEGIN + timedelta(hours=hour))


def fault(ident: str, first: float, cleared: float | None, kind: str = XID, part: str = "gpu4") -> FaultRecord:
    marks = {"silence": at(first)} if kind == "telemetry.lost" else {}
    ended = "" if cleared is None else at(cleared)
    return FaultRecord(
        ident, kind, f"a/n1/{part}", "catastrophic", "hardware", "reboot", 1, at(first), at(first), "", marks,
        cleared_at=ended, arrived_at=at(first),
    )  # fmt: skip


def node(
    name: str, enrolled: float, start: str, *moves: tuple[float, str, str], faults: Sequence[FaultRecord] = ()
) -> NodeState:
    """Return a node; each move has its hour, where to, and the fault that it answers: "" for a person's order."""
    origins = [start, *(target for _, target, _ in moves)]
    records = tuple(
        TransitionRecord(
            at(hour), origin, target, f"d-{name}-{hour:g}" if by else "", rule=RULE if by else "", faults=(by,)
        )
        for origin, (hour, target, by) in zip(origins, moves, strict=False)
    )
    return NodeState(
        name, "a", origins[-1], at(moves[-1][0] if moves else enrolled), "", "", at(enrolled), transitions=records,
        faults=tuple(faults),
    )  # fmt: skip


def measure(fleet: Fleet, *states: NodeState, end: datetime = END, **unread: str) -> Reliability:
    unknown = {each.node: [(parse_time(unread[each.node]), end)] if each.node in unread else [] for each in states}
    return sum_reliability(BEGIN, [measure_node(fleet, each, BEGIN, end, unknown[each.node]) for each in states])


def test_failures_and_repairs_are_counted_with_the_time_in_each_stage(fleet: Fleet) -> None:
    n1 = node(
        "n1", -50, "production",
        (10, "draining", "f1"), (12, "triage", "f1"), (20, "zap", "d"), (22, "test", "d"), (46, "production", "d"),
        (80, "production-reboot", "f2"), (81, "production", "d"),
        faults=[fault("f1", 10, 20), fault("f2", 80, 81, part="gpu5")],
    )  # fmt: skip
    n2 = node("n2", -50, "production", (90, "triage", "f3"), faults=[fault("f3", 90, None)])
    n3 = node("n3", -50, "production", (50, "triage", ""), (60, "production", "d"))
    found = measure(fleet, n1, n2, n3)
    # n1 is out for 36 h and 1 h, n2 for 10 h and goes on, n3 for 10 h by an order, which is no failure
    assert (found.up_hours, found.down_hours, found.unknown_hours) == (300 - 57, 57, 0)
    assert (found.failures, found.mtbf_hours) == (3, 243 / 3)
    assert (found.repairs, found.mttr_hours, found.in_repair) == (2, (36 + 1) / 2, 1)
    assert found.stages == (
        StageTime("test", 1, 24, 24),
        StageTime("triage", 1, 8, 18),
        StageTime("draining", 1, 2, 2),
        StageTime("zap", 1, 2, 2),
        StageTime("production-reboot", 1, 1, 1),
    )
    assert found.lost == {XID: 47, ORDERED: 10}


def test_only_what_is_in_the_time_counts(fleet: Fleet) -> None:
    n1 = node("n1", -50, "production", (-6, "triage", "f1"), (4, "production", "d"), faults=[fault("f1", -6, 4)])
    found = measure(fleet, n1)
    assert (found.failures, found.mtbf_hours) == (0, None), "it failed before"
    assert (found.repairs, found.mttr_hours, found.down_hours) == (1, 10, 4)
    assert found.stages == (StageTime("triage", 1, 10, 4),)
    new = measure(fleet, node("n2", 0, "test", (30, "production", "d")))
    assert (new.up_hours, new.down_hours, new.failures) == (70, 0, 0), "it counts from when it first served"


def test_time_in_which_nobody_read_a_node_is_neither_up_nor_down(fleet: Fleet) -> None:
    past = node("n1", -50, "production", faults=[fault("s", 10, 25, "telemetry.lost", "probe")])
    one = [fault("s", 10, 25, "telemetry.lost", "agent"), fault("t", 20, 40, "telemetry.lost", "bmc")]
    found = measure(fleet, past, node("n2", -50, "production", faults=one), node("n3", -50, "production"), n3=at(70))
    # the probe of n1 for 15 h; of n2 both the agent and the BMC for 5 h; n3 is not known now, for 30 h
    assert (found.up_hours, found.down_hours, found.unknown_hours) == (250, 0, 50)
    never = measure(fleet, node("n4", -50, "production"), n4="")
    assert (never.up_hours, never.unknown_hours) == (0, 100)


def test_first_passes_count_the_first_try_on_each_way_into_service(fleet: Fleet) -> None:
    good = node(
        "n1", 0, "initializing",
        (1, "onboard", "d"), (2, "seatrial", ""), (3, "zap", "d"), (4, "test", "d"), (28, "production", "d"),
        (40, "production-reboot", "f"), (41, "production", "d"), (50, "production-reboot", "f"), (52, "draining", "d"),
        faults=[fault("f", 40, 41)],
    )  # fmt: skip
    bad = node(
        "n2", 0, "seatrial",
        (3, "zap", "d"), (9, "zapfail", "d"), (10, "seatrial", ""), (11, "zap", "d"), (12, "test", "d"),
    )  # fmt: skip
    found = measure(fleet, good, bad)
    # zap: n1 passed, n2 failed, its second try counts no more; netboot: n1; reboot: n1 passed once and failed once
    assert found.first_passes == (
        FirstPass("zap", 2, 1, 0.5),
        FirstPass("netboot", 1, 1, 1.0),
        FirstPass("reboot", 2, 1, 0.5),
    )
    later = sum_reliability(END, [measure_node(fleet, good, END, END + timedelta(hours=1), ())])
    assert later.first_passes[0] == FirstPass("zap", 0, 0, None), "no try is no share"
