"""The first page says what broke since yesterday and where, with everything excused and unseen apart."""

from __future__ import annotations

import html
import re

import pytest

from assay.decide.state.node_state import NodeState
from assay.model.faults.fault_record import FaultRecord
from assay.tell.report.allure import allure_status, describe_problems
from assay.tell.report.overview_model import build_overview
from assay.tell.report.overview_phrases import headline, where
from assay.tell.report.report_builder import render_overview
from assay.tell.report.status_changes import RolloutWaits
from tests.support.browser import measure_overflow, needs_browser, show
from tests.tell.report.conftest import at

LINK = "suites/production/test_network.py::test_link_is_clean"
FIRMWARE = "suites/zap/test_firmware.py::test_firmware_is_the_bundles"
MEMORY = "suites/seatrial/test_host.py::test_memory_size"
NODES = [f"n{number:04}" for number in range(1, 17)]
RACK = NODES[4:8]


def text(page: str) -> str:
    """Return what a person reads."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def day(runs, hours: float, ill: dict[str, list[str]]) -> None:
    """Store a run of every node, with checks that fail on some."""
    heat = runs.outcome("n0001").check
    runs.run(hours, *(
        runs.outcome(node, check, verdict="fail" if node in ill.get(check, []) else "pass", hours=hours)
        for node in NODES for check in (heat, MEMORY, *([FIRMWARE] if FIRMWARE in ill else []))
    ))  # fmt: skip


def test_a_rack_that_broke_is_the_first_thing_said(runs):
    heat = runs.outcome("n0001").check
    day(runs, -24, {MEMORY: ["n0002"]})
    day(runs, 0, {MEMORY: ["n0002", *RACK], heat: RACK})
    one = runs.overview()
    assert headline(one) == "8 new incidents on 4 nodes since yesterday 12:00 UTC"
    assert where(one) == "memory_size: 4 of 4 nodes of rack r02; temperatures: 4 of 4 nodes of rack r02"
    assert [card.holders for card in one.cards] == [tuple(RACK)] * 2
    page = text(render_overview(one))
    assert page.index("8 new incidents") < page.index("rack r02") < page.index("The fleet, by pool and rack")
    assert "1 still failing" in page


def test_nodes_that_wait_for_their_wave_are_no_failures_and_a_real_one_still_is(runs):
    heat = runs.outcome("n0001").check
    day(runs, -24, {})
    day(runs, 0, {FIRMWARE: [*RACK, "n0001"], heat: [RACK[0]]})
    assert headline(runs.overview()) == "6 new incidents on 5 nodes since yesterday 12:00 UTC", "no rollout runs"
    rollout = RolloutWaits("1a2b3c4d" * 2, frozenset(RACK), frozenset([FIRMWARE]))
    one = runs.overview(rollout=rollout)
    assert headline(one) == "2 new incidents on 2 nodes since yesterday 12:00 UTC"
    assert {(change.check, change.holder) for change in one.broke} == {(FIRMWARE, "n0001"), (heat, RACK[0])}
    assert {change.holder for change in one.waiting} == set(RACK)
    counts = {holder.name: (holder.failing, holder.newly, holder.waiting) for holder in one.holders}
    assert (counts["n0001"], counts[RACK[0]], counts[RACK[1]]) == ((1, 1, 0), (1, 1, 1), (0, 0, 1))
    page = text(render_overview(one))
    assert "4 waiting for the rollout" in page
    assert "Waiting for the rollout 4 failures on 4 nodes: n0005..n0008" in page
    assert "assay rollout show 1a2b3c4d" in page
    day(runs, 48, {FIRMWARE: RACK})
    later = runs.overview(rollout=rollout)
    assert (headline(later)[:13], len(later.waiting), later.still_cards) == ("Nothing broke", 4, ())
    assert len(runs.overview().still_cards) == 1, "without the rollout they fail as before"


def test_failures_that_follow_from_one_cause_are_one_incident_of_all_nodes_that_have_it(runs):
    lost, silent = "suites/production/test_bmc.py::test_gpus_are_well_out_of_band", "suites/x/test_a.py::test_silent"
    checks = ((lost, "", "gpu.missing"), (silent, "gpu4", "gpu.silent"), (silent, "gpu5", "gpu.silent"))

    def look(hours: float, ill: list[str]) -> None:
        runs.run(hours, *(
            runs.outcome(node, check, part, hours, verdict="fail" if node in ill else "pass", fault=fault)
            for node in NODES for check, part, fault in checks
        ))  # fmt: skip

    look(-24, ["n0002"])
    look(0, ["n0002", "n0003", "n0012"])
    one = runs.overview()
    assert headline(one) == "2 new incidents on 2 nodes since yesterday 12:00 UTC"
    (card,), (before,) = one.cards, one.still_cards
    assert (card.holders, before.holders) == (("n0003", "n0012"), ("n0002",))
    assert card.title == before.title == f"{runs.fleet.fault_catalog.describe('gpu.missing')} (gpu.missing)"
    assert card.reach == "2 of 16 nodes, in 2 racks"


def test_what_only_the_nodes_of_an_incident_share_is_told(runs):
    ill, check = ["n0002", "n0003", "n0012"], "suites/production/test_gpu.py::test_heat"
    runs.run(0, *(
        runs.outcome(node, check, "", 0, verdict="fail" if node in ill else "pass", fault="gpu.thermal")
        for node in NODES
    ))  # fmt: skip
    traits = {node: frozenset({("batch", "lot-7" if node in ill else "lot-1"), ("spec", "hgx-h100")}) for node in NODES}
    with runs.standing() as standing:
        page = build_overview(runs.fleet, standing, traits=traits)
    (card,) = page.cards
    assert card.shared == f"batch lot-7 (3 of 3, and 0 of the {len(NODES) - 3} others)"
    assert f"Only these share: {card.shared}" in render_overview(page)


def test_what_a_gpu_that_is_gone_does_not_answer_is_its_incident(runs):
    answers, speed = "suites/seatrial/test_gpu.py::test_gpu_answers", "suites/production/test_gpu.py::test_gpu_power"
    for hours, gone in ((-24, ()), (0, ("gpu6",))):
        runs.run(hours, *(
            runs.outcome("n0003", check, part, hours, fault="gpu.missing" if check == answers else "",
                         verdict="pass" if part not in gone else "fail" if check == answers else "error")
            for part in ("gpu5", "gpu6") for check in (answers, speed)
        ), runs.outcome("n0004", speed, "gpu6", hours, verdict="error" if hours == 0 else "pass"))  # fmt: skip
    one = runs.overview()
    assert [card.holders for card in one.cards] == [("n0003",)]
    assert [card.holders for card in one.unknown_cards] == [("n0004",)], "only what no incident explains"


def test_a_fault_that_only_a_log_told_is_an_incident_too(runs):
    day(runs, -24, {})
    day(runs, 0, {})
    kinds = {("gpu.xid.48", "gpu1"): -30, ("gpu.xid.79", "gpu6"): -3}
    with runs.standing() as standing:
        faults = [
            FaultRecord(f"f-{kind}", kind, f"h100-a/n0003/{part}", "catastrophic", "hardware", "reboot", 1, at(hours),
                        at(hours), "fell off", marks={"kernel": "b:1"}, arrived_at=at(hours))
            for (kind, part), hours in kinds.items()
        ]  # fmt: skip
        state = NodeState("n0003", "h100-a", "production", "", "", "", "", faults=tuple(faults))
        one = build_overview(runs.fleet, standing, states={"n0003": state})
    assert headline(one) == "1 new incident on 1 node since yesterday 12:00 UTC"
    assert [card.title.rpartition(" ")[2] for card in (*one.cards, *one.still_cards)] == [
        "(gpu.xid.79)",
        "(gpu.xid.48)",
    ]
    assert [holder.name for holder in one.holders if holder.is_ill] == ["n0003"], "on the map too"
    assert 'class="old" title="r01 n0003: 2 faults of logs' in render_overview(one)


def test_the_first_run_tells_what_fails_in_it(runs):
    day(runs, 0, {MEMORY: RACK})
    one = runs.overview()
    assert headline(one) == "4 incidents on 4 nodes in the first run"
    assert where(one) == "memory_size: 4 of 4 nodes of rack r02"


def test_nothing_broke_is_said_too(runs):
    day(runs, -24, {MEMORY: ["n0002"]})
    day(runs, 0, {})
    one = runs.overview()
    assert headline(one) == "Nothing broke since yesterday 12:00 UTC"
    assert "1 fixed" in text(render_overview(one))


def test_known_issues_and_checks_on_trial_are_no_failures(runs):
    runs.run(
        0,
        runs.outcome("n0003", verdict="fail", known="https://example.net/issues/41"),
        runs.outcome("n0004", MEMORY, verdict="fail", observed=True),
    )
    one = runs.overview()
    page = render_overview(one)
    assert not one.broke
    assert headline(one) == "Nothing fails in the first run"
    assert {"n0003: 1 excused", "n0004: 1 excused"} <= {*re.findall(r"n\d{4}: 1 excused", page)}


def test_nodes_that_nobody_judged_for_long_are_told(runs):
    runs.run(-96, *(runs.outcome(node, hours=-96) for node in NODES[:2]))
    runs.run(0, *(runs.outcome(node) for node in NODES[2:]))
    one = runs.overview()
    assert [stood.name for stood in one.stale] == NODES[:2]
    assert {stood.name for stood in one.never} == {"n0017", "n0018", "n0019", "n0020"}
    assert "Never: n0017..n0020" in text(render_overview(one))


def test_passes_on_evidence_older_than_the_policy_allows_are_well_on_no_page(runs):
    old, young = -runs.fresh_hours - 1, -runs.fresh_hours + 1
    runs.run(0, runs.outcome("n0003", hours=old), runs.outcome("n0004", hours=young), runs.outcome("n0005", hours=0))
    one = runs.overview()
    assert [holder.name for holder in one.stale] == ["n0003"]
    assert "n0003: 1 check passed on evidence too old; the newest is 31 h old" in render_overview(one)
    with runs.standing() as standing:
        holders = {holder.name: holder for holder in standing.read_holders()}
    assert {name: allure_status(holder) for name, holder in holders.items()} == {
        "n0003": "broken",
        "n0004": "passed",
        "n0005": "passed",
    }
    assert "older than the policy allows" in describe_problems(holders["n0003"])


def test_a_node_of_which_all_was_skipped_is_not_well(runs):
    runs.run(0, runs.outcome("n0003", verdict="skip"), runs.outcome("n0004"))
    page = render_overview(runs.overview())
    assert "n0003: nothing judged, all was skipped" in page
    assert "n0004: 1 check well" in page


def test_every_node_is_in_the_map_and_says_why(runs):
    day(runs, -24, {})
    day(runs, 0, {MEMORY: RACK})
    page = render_overview(runs.overview())
    titles = {name: look for look, name in re.findall(r'class="(\w+)" title="r\d\d (n\d{4}): ', page)}
    assert set(titles) == {*runs.fleet.nodes}
    assert {name for name, look in titles.items() if look == "new"} == set(RACK)
    assert "memory_size: fail as planted" in html.unescape(page)


def test_what_comes_from_outside_is_escaped(runs):
    runs.run(0, runs.outcome("n0003", verdict="fail", reason="<script>alert(1)</script>"))
    assert "<script" not in render_overview(runs.overview())


def test_the_page_needs_nothing_from_elsewhere(runs):
    day(runs, 0, {MEMORY: RACK})
    page = render_overview(runs.overview())
    assert not re.search(r"""(src|href)=["'](https?:)?//|@import|url\(""", page)


@needs_browser
def test_a_browser_shows_the_answer_without_scrolling(runs):
    day(runs, -24, {})
    day(runs, 0, {MEMORY: RACK})
    with show(render_overview(runs.overview())) as page:
        boxes = [
            page.get_by_text(said).first.bounding_box()
            for said in ("4 new incidents on 4 nodes", "rack r02", "This week beside the last", "Tickets")
        ]
    assert all(box and box["y"] + box["height"] < 800 for box in boxes)


@pytest.mark.slow
@needs_browser
def test_the_page_fits_the_window_of_a_phone(runs):
    day(runs, -24, {})
    day(runs, 0, {MEMORY: RACK})
    assert measure_overflow(render_overview(runs.overview()), 360) == 0


def test_a_collector_that_died_is_no_quiet_day(runs):
    day(runs, -24, {})
    runs.run(0, *(runs.outcome(node, verdict="error", reason="no evidence") for node in NODES))
    one = runs.overview()
    assert headline(one) == "16 outcomes on 16 places can no longer be judged since yesterday 12:00 UTC"
    assert where(one) == "no evidence: 16 of 16 nodes, in 4 racks"
    assert "Nothing broke" not in text(render_overview(one))
