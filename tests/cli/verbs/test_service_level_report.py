"""`assay report --month`: what pools delivered of their service level, as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay.act.ingest.silent_nodes import read_unknown_times
from assay.adapters.scheduler import StatusReadings
from assay.cli.workspace import Workspace
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import SuiteRun
from assay.tell.pages.fleet_pages import render_customer_page
from assay.tell.pages.page_frame import PageRequest
from assay.tell.report.fleet_week import build_fleet_week
from assay.tell.server.visitor_rights import Visitor
from assay.tell.views.hosts import HostReader
from tests.support.forked_assay import assay, run_assay
from tests.support.noted_readings import note_readings
from tests.support.serving_fleet import change_yaml, make_serving_fleet

BEGIN = datetime(2025, 3, 1, tzinfo=UTC)
LEVEL = {
    "percent": 99,
    "since": "2025-02-15",
    "credit": [{"below": 99, "percent": 10}, {"below": 95, "percent": 25}],
    "source": "contract 7",
}


def at(day: float) -> datetime:
    return BEGIN + timedelta(days=day)


def move(node: str, day: float, origin: str, target: str) -> tuple[LedgerEntry, LedgerEntry]:
    ident, when = f"d-{node}-{day:g}", at(day).isoformat()
    decision = {"decision": ident, "from": origin, "to": target, "timing": "immediate", "rule": "a rule"}
    decision |= {"remedy": "none", "because": [], "blockers": []}
    moved = {"from": origin, "to": target, "decision": ident}
    return LedgerEntry(ident, when, "decision", node, decision), LedgerEntry(
        f"t-{ident}", when, "transition", node, moved
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes serve from 26 February on: n1 is out from 4 to 6 March, and no controller runs from 11 to 15 March."""
    root = tmp_path_factory.mktemp("fleet")
    make_serving_fleet(root, ["n1", "n2", "n3"])

    def declare(pools: dict) -> None:
        ours = pools["a"]
        pools["free"] = {"vars": dict(ours["vars"]), "hosts": {"n3": ours["hosts"].pop("n3")}}
        ours["vars"]["capacity"] = {"delivered": 2, "service_level": LEVEL}

    change_yaml(root / "inventory/a.yml", declare)
    ledger = Ledger.open(root / ".assay/ledger.sqlite")
    for name, pool in (("n1", "a"), ("n2", "a"), ("n3", "free")):
        ledger.append(make_enrolled_entry(name, pool, "production", at(-3)))
    ledger.append(*move("n1", 3, "production", "triage"), *move("n1", 5, "triage", "production"))
    for hour in range(-72, 31 * 24 + 2):
        when = at(hour / 24)
        if not at(10) < when < at(14):
            ledger.record(SuiteRun(f"run{hour}", when.isoformat(), ("production",), ("n1", "n2", "n3")), [])
    ledger.close()
    return root


def test_text_says_what_was_delivered_lost_and_not_known(home: Path) -> None:
    whole, cause = assay(home, "report", "--month", "2025-03").splitlines()
    # 2 nodes · 31 days; n1 lacks for 2 days, and for 4 days nobody knows of either
    known = "1248.0 of 1488.0 node-hours, 192.0 not known"
    assert whole == f"pool a, 2025-03: 96.30 % of 99 % ({known}); credit 10 %, at most 25 %"
    assert cause == "  48.0 h lost, another reason, such as a rollout: n1"


def test_csv_and_json_hold_the_same_rows(home: Path) -> None:
    table = list(csv.DictReader(io.StringIO(assay(home, "report", "--month", "2025-03", "--format", "csv"))))
    rows = json.loads(assay(home, "report", "--month", "2025-03", "--format", "json"))
    assert [(row["cause"], float(row["lost_hours"])) for row in table] == [
        (row["cause"], row["lost_hours"]) for row in rows
    ]
    whole, cause = rows
    assert (whole["delivered_hours"], whole["unknown_hours"], whole["lost_hours"]) == (1248, 192, 48)
    assert (whole["percent"], whole["credit_percent"], whole["credit_at_most_percent"]) == (96.2963, 10, 25)
    assert (cause["nodes"], cause["decisions"]) == (["n1"], ["d-n1-3"])
    assert table[1]["decisions"] == "d-n1-3"
    assert {row["pool"] for row in rows} == {"a"}, "pool `free` declares no service level"


def test_a_month_without_a_record_is_not_known_and_one_before_the_level_has_no_row(home: Path) -> None:
    (later,) = json.loads(assay(home, "report", "--month", "2025-05", "--format", "json"))
    assert (later["delivered_hours"], later["lost_hours"], later["percent"], later["credit_percent"]) == (
        0,
        0,
        None,
        None,
    )
    assert later["unknown_hours"] == later["declared_hours"] == 2 * 31 * 24
    assert "not known of 99 %" in assay(home, "report", "--month", "2025-05")
    (first,) = json.loads(assay(home, "report", "--month", "2025-02", "--format", "json"))
    # from 15 February on; before the first node was enrolled on the 26th, nothing is known
    assert (first["delivered_hours"], first["unknown_hours"]) == (2 * 3 * 24, 2 * 11 * 24)
    for month in ("2025-01", "2999-01"):
        assert assay(home, "report", "--month", month) == f"no pool had a service level in {month}\n"
        assert json.loads(assay(home, "report", "--month", month, "--format", "json")) == []
        assert len(assay(home, "report", "--month", month, "--format", "csv").splitlines()) == 1, "the names"


class EndOfMonth(Workspace):
    """The records as of the end of the month."""

    clock = SimpleNamespace(now=lambda: at(31) - timedelta(seconds=1))


def test_pages_capacity_and_weeks_count_the_same_hours_as_the_report(home: Path) -> None:
    records, acme = EndOfMonth(home), Visitor("acme", "customer", frozenset({"a"}))
    request, unread = PageRequest("/customer", {}, {}, 0, at(31), acme), Visitor("b", "customer", frozenset({"free"}))
    dark = render_customer_page(records, replace(request, visitor=unread))
    assert "No availability is known" in dark, "no node was ever read"
    note_readings(home, at(31))
    states = {state.node: state for state in records.read_node_states()}
    reader = HostReader(records, states, lambda names: StatusReadings(frozenset(names), {}, {}))
    [pool] = reader.list_groups("pool", "a")
    assert (pool.reliability.unknown_hours, pool.reliability.down_hours) == (192, 48)
    page = render_customer_page(records, request)
    # 1248 h of 1296 h: a controller that stands still watches nobody, so these hours are no time in service
    assert "96.29 % available since 2025-03-01 00:00 UTC, over 2 nodes" in page
    assert "In 192.0 node-hours nobody knew how a node was: these count in neither." in page
    times = read_unknown_times(records.fleet, records.ledger, states.values(), BEGIN, at(31), {})
    # n1 is out for a day of the week before the 12th, of which nobody knows the last day
    week = build_fleet_week(records.fleet, states, [], at(11), times)
    assert week.pools[0].shares[0] == pytest.approx(1 - 24 / (2 * 6 * 24), abs=1e-4)


def test_a_process_reads_the_runs_that_came_since_it_looked(home: Path) -> None:
    records = EndOfMonth(home)
    states, last, later = records.read_node_states(), at(31 + 1 / 24), at(40)
    look = partial(read_unknown_times, records.fleet, records.ledger, states, at(20), later, {})
    assert look()["n1"][-1] == (last, later)
    records.ledger.record(SuiteRun("late", at(35).isoformat(), ("production",), ("n1",)), [])
    assert (look()["n1"][-2:], look()["n2"][-1]) == ([(last, at(35)), (at(35), later)], (last, later))
    everything = read_unknown_times(records.fleet, records.ledger, states, at(0), later, {})
    assert (at(10), at(14)) in everything["n1"], "an earlier time is read when somebody asks for it"


def test_what_is_no_month_is_refused(home: Path) -> None:
    done = run_assay("report", "--month", "2025-13", "--fleet", home)
    assert done.returncode == 2
    assert "'2025-13' is not a month" in done.stderr
