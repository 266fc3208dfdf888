"""A controller whose clock differs from most BMCs and agents says that of itself, and does nothing by it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from assay.act.ingest import right_clock
from assay.act.ingest.right_clock import WrongClock, find_wrong_clock, read_agent_clocks, require_right_clock
from assay.act.ingest.silent_nodes import open_last_seen
from assay.act.loop import reconcile_pass
from assay.act.loop.context import ControllerContext
from assay.act.loop.reconcile_pass import record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.model.evidence import EvidenceDocument
from assay.observe.last_seen import CLOCK_OFF, DeliveryPosition
from tests.act.quiet_site import NODES, Site

DAY = 90000.0


def read(site: Site, *offsets: float) -> list[EvidenceDocument]:
    now, named = site.clock.now(), zip(NODES, offsets, strict=False)
    return [
        EvidenceDocument(name, now, {"bmc": {"manager": {"clock_off_s": {"value": off_s}}}}) for name, off_s in named
    ]


@pytest.mark.parametrize(
    ("offsets", "problem"),
    [
        ([DAY, DAY + 1, 0.0], "25 h behind the clocks of 2 of 3 BMCs and agents"),
        ([-DAY, 0.0, 1.0], ""),
        ([-DAY, 4000.0, 70.0, 600.0], ""),
        ([-DAY, -DAY], ""),
        ([59.0, 59.0, 59.0], ""),
        ([], ""),
    ],
)
def test_most_clocks_are_right(offsets: list[float], problem: str) -> None:
    wrong = find_wrong_clock(offsets)
    assert problem in wrong
    assert bool(problem) is bool(wrong)


def deliver(context: ControllerContext, off_s: float, at: datetime) -> None:
    delivered = {name: DeliveryPosition("b", 1, 1, {CLOCK_OFF: off_s}) for name in NODES[:4]}
    open_last_seen(context).record_delivery(delivered, at)


def test_agents_say_it_where_a_server_heard_them_by_the_same_clock_just_now(site: Site) -> None:
    fleet = replace(site.desk.fleet, is_lab=False)
    context, now = replace(site.desk, fleet=fleet), site.clock.now()
    deliver(context, -DAY, now)
    with pytest.raises(WrongClock, match="25 h ahead of the clocks of 4 of 4 BMCs and agents"):
        require_right_clock(context)
    deliver(context, -DAY, now - timedelta(hours=25))
    assert read_agent_clocks(context) == {}, "the server has another clock, or listens no more"
    require_right_clock(context)
    deliver(context, -DAY, now)
    assert read_agent_clocks(site.desk) == {}, "the time of a lab is made up"


@pytest.mark.parametrize(("others", "is_wrong"), [(-DAY, True), (0.0, False)])
def test_a_few_documents_that_differ_are_compared_with_more_bmcs(
    site: Site, monkeypatch: pytest.MonkeyPatch, others: float, *, is_wrong: bool
) -> None:
    monkeypatch.setattr(right_clock, "_ask_bmcs", lambda _, known: {"x": others, "y": others, "z": others})
    if not is_wrong:
        require_right_clock(site.desk, read(site, -DAY))
        return
    with pytest.raises(WrongClock, match="of 4 of 4"):
        require_right_clock(site.desk, read(site, -DAY))


def test_no_bmc_is_asked_again_where_those_that_were_read_agree(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(right_clock, "_ask_bmcs", lambda *_: pytest.fail("it was asked"))
    require_right_clock(site.desk, read(site, 0.0))
    require_right_clock(site.desk, read(site, 0.0, 1.0, -DAY, 2.0))


def test_a_round_begins_no_effect_before_it_has_looked_at_clocks(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.fault(NODES[0])
    assert record_decisions(FleetSnapshotCache(site.desk)) == 1
    done, clocks = list[Any](), dict.fromkeys(NODES[:3], -DAY)
    monkeypatch.setattr(reconcile_pass, "run_effects", lambda *asked, **_: done.append(asked))
    monkeypatch.setattr(right_clock, "_ask_bmcs", lambda *_: clocks)
    head = site.ledger.head()
    with pytest.raises(WrongClock, match="nothing is judged or decided until it is right"):
        reconcile_pass.reconcile_once(site.desk, NODES[:1], scan_fabric=False)
    assert (done, site.ledger.head()) == ([], head)
