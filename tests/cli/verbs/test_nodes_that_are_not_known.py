"""A node in service that nothing has read for longer than the policy allows is not known, on every surface."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from assay.act.ingest.silent_nodes import read_reading_times
from assay.cli.workspace import Workspace
from assay.decide.faults.telemetry_silence import list_unread
from assay.decide.rollouts.rollout_history import RolloutHistory
from assay.declare.loader import load_fleet
from assay.model.entries.faults import ObservationFailedEntry
from assay.model.timestamps import NEVER
from assay.observe.last_seen import CONTACTS_FILE, LastSeen
from assay.tell.customer.view import build_customer_view
from assay.tell.pages.fleet_pages import render_fleet_page, render_pool_page
from assay.tell.pages.page_frame import PageRequest
from assay.tell.report.fleet_week import build_fleet_week
from assay.tell.views.fleet import build_fleet_view, list_cells
from assay.tell.views.listings import VisibleFleet, summarize_pools
from assay.tell.views.node_status import ServiceCount
from assay.tell.views.records import find_unread
from tests.support.noted_readings import note_readings

HOUR = timedelta(hours=1)


class PagedWorkspace(Workspace):
    """What pages read beside the nodes: no ticket and no rollout."""

    def read_tickets(self):
        return []

    def read_rollouts(self):
        return RolloutHistory()


def test_a_node_that_was_just_read_is_known(ann):
    assert [node["unread_since"] for node in ann.reads("status")["nodes"]] == [None] * 4
    assert "not known" not in ann.types("status")


@pytest.mark.parametrize("age", [timedelta(minutes=59), timedelta(minutes=61)])
def test_status_and_explain_say_since_when(ann, age):
    at = datetime.now(UTC) - age
    note_readings(ann.root, at)
    is_old = age > HOUR
    told = {node["node"]: node["unread_since"] for node in ann.reads("status")["nodes"]}
    serving = {"n0003", "n0004"}
    assert {name for name, since in told.items() if since is not None} == (serving if is_old else set())
    text = ann.types("status")
    assert ("not known: last read 61 min ago" in text) == is_old
    assert ("2 not known (for up to 61 min)" in text) == is_old
    assert ("not known: last read 61 min ago" in ann.types("explain", "n0003").splitlines()[0]) == is_old
    customer = ann.reads("explain", "n0003", "--for", "customer")
    assert ("and do not know how it is" in customer["happened"]) == is_old
    assert ("We try to read it again" in customer["doing"]) == is_old
    assert ("We check it all the time" in customer["doing"]) != is_old


def test_pages_count_it_apart_and_no_rack_with_it_is_well(ann):
    workspace = Workspace(ann.root)
    states = workspace.read_node_states()
    for age, standing in ((timedelta(), "serving"), (2 * HOUR, "unread")):
        note_readings(ann.root, datetime.now(UTC) - age)
        cells = list_cells(workspace.fleet, states, find_unread(workspace, states))
        view = build_fleet_view(workspace.fleet, cells)
        assert view.counts[standing] == 2
        assert {cell.name for cell in cells if cell.standing == standing} == {"n0003", "n0004"}
        assert not any(rack.is_well for racks in view.sites.values() for rack in racks) or standing == "serving"


def test_metrics_count_it(ann):
    assert 'assay_nodes_unread{pool="h100-a"} 0.0' in ann.types("metrics")
    note_readings(ann.root, datetime.now(UTC) - 2 * HOUR)
    assert 'assay_nodes_unread{pool="h100-a"} 2.0' in ann.types("metrics")


def test_every_surface_gives_the_same_count(ann):
    """Also of a node that a person holds, and of one that was read."""
    note_readings(ann.root, datetime.now(UTC) - 2 * HOUR)
    ann.types("hold", "n0003", "--reason", "a look", "--for", "2h")
    for answered in ({}, {("n0004", "probe"): True}):
        LastSeen(ann.root / ".assay" / CONTACTS_FILE).record_polls(answered, datetime.now(UTC))
        serving, not_known = len(answered), 2 - len(answered)
        workspace = Workspace(ann.root)
        states = workspace.read_node_states()
        unread = find_unread(workspace, states)
        said = f"{not_known} not known (for up to 2 h)"
        counts = ann.types("status").split("\n")
        assert any(said in line and (f"{serving} production" in line) == bool(serving) for line in counts)
        told = [node for node in ann.reads("status")["nodes"] if node["state"] == "production"]
        assert [node["unread_since"] is None for node in told].count(True) == serving
        read = read_reading_times(workspace.data_dir, states)
        view = build_fleet_view(workspace.fleet, list_cells(workspace.fleet, states, unread, read=read))
        assert view.service == ServiceCount(serving, not_known)
        records, request = PagedWorkspace(ann.root), PageRequest("/", {"name": "h100-a"}, {}, 0, datetime.now(UTC))
        for page in (render_fleet_page, render_pool_page):
            assert re.search(rf"{serving} of \d+ nodes in service, {re.escape(said)}", page(records, request))
        customers = build_customer_view(workspace, lambda node: True)
        assert (customers.serving, customers.doubt) == (serving, said)
        pool, *_ = summarize_pools(VisibleFleet(workspace, lambda state: True, for_customer=False).list_nodes())
        assert (pool.in_service, pool.not_known) == (serving, not_known)
        now = datetime.now(UTC)
        weeks = build_fleet_week(
            workspace.fleet, {state.node: state for state in states}, [], now, {node: [(NEVER, now)] for node in unread}
        ).pools
        week = next(each for each in weeks if each.name == "h100-a")
        assert (week.serving, week.unread) == (serving, not_known)
        metrics = ann.types("metrics")
        nodes = dict.fromkeys(("true", "unknown", "false"), 0.0)
        for value, count in re.findall(r'assay_nodes{in_service="(\w+)".*} (\S+)', metrics):
            nodes[value] += float(count)
        assert nodes == {"true": serving, "unknown": not_known, "false": 2}
        assert f'assay_nodes_unread{{pool="h100-a"}} {not_known}.0' in metrics
        assert f'assay_service_gpus{{pool="h100-a",standing="healthy"}} {view.gpus[1]}.0' in metrics
        assert view.gpus == (16, serving * 8)


def test_a_fleet_without_any_reading_is_not_known_and_no_file_is_made(ann):
    file = ann.root / ".assay/heard.sqlite"
    file.unlink()
    assert "not known yet: never read" in ann.types("status")
    assert not file.exists()


def test_who_was_never_read_is_not_known_from_the_start_and_who_was_shut_down_has_an_hour(ann):
    fleet, now = load_fleet(ann.root), datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
    states = Workspace(ann.root).read_node_states()
    assert list_unread(states, fleet.policies.values(), {}, now) == {"n0003": "", "n0004": ""}
    long_ago = {(state.node, "probe"): (now - 9 * HOUR).timestamp() for state in states}
    assert list_unread(states, fleet.policies.values(), long_ago, now) == {}, "they have served for half an hour"
    assert [*list_unread(states, fleet.policies.values(), long_ago, now + HOUR)] == ["n0003", "n0004"]


def test_a_node_that_is_not_known_has_a_reason_and_a_next_step(ann):
    at = datetime.now(UTC)
    failed = ObservationFailedEntry("probe", "no answer within 10 s").make_entry("f1", (at - HOUR).isoformat(), "n0003")
    ann.ledger().append(failed)
    task = "engineers: find out why nothing reads the node: assay observe"
    silent = f"{task} (its probe did not answer: no answer within 10 s)"
    for age, known, step in (
        (timedelta(minutes=50), "", ""),
        (timedelta(minutes=61), "not known: last read 61 min ago", silent),
        (None, "not known yet: never read", silent),
    ):
        note_readings(ann.root, at - (age or HOUR))
        if age is None:
            (ann.root / ".assay/heard.sqlite").unlink()
        first, *rest = ann.types("explain", "n0003").splitlines()
        assert first.strip().endswith(known)
        assert [line for line in rest if line.startswith("next") and step in line] or not step
        assert (f"→ {step}" in ann.types("status", "--node", "n0003")) == bool(step)
    note_readings(ann.root, at - 2 * HOUR)
    assert f"→ {silent}" in ann.types("status", "--node", "n0003")
    assert f"→ {task} (no try is on record since: does assay reconcile run?)" in ann.types("status", "--node", "n0004")


def test_a_node_whose_agent_and_bmc_are_silent_is_not_known_though_its_probe_answers(ann):
    fleet, now = load_fleet(ann.root), datetime.now(UTC)
    states = [state for state in Workspace(ann.root).read_node_states() if state.node in ("n0003", "n0004")]
    early, late = (now - timedelta(hours=3)).timestamp(), (now - timedelta(hours=2)).timestamp()
    heard = {(state.node, "probe"): now.timestamp() for state in states}
    heard |= {("n0003", "bmc"): early, ("n0003", "agent"): late, ("n0004", "bmc"): early}
    assert [*list_unread(states, fleet.policies.values(), heard, now)] == ["n0003"]
    heard["n0003", "bmc"] = now.timestamp()
    assert list_unread(states, fleet.policies.values(), heard, now) == {}


def test_status_and_explain_say_how_old_the_reading_of_a_node_is_that_is_not_well(ann):
    note_readings(ann.root, datetime.now(UTC) - timedelta(minutes=13))
    assert "read 13 min ago" in ann.types("explain", "n0003").splitlines()[0]
    assert "read 13 min ago" not in ann.types("status", "--node", "n0003")
    ann.types("hold", "n0003", "--reason", "a look", "--for", "2h")
    assert "read 13 min ago" in ann.types("status", "--node", "n0003")
    assert all(node["read_at"] for node in ann.reads("status", "--node", "n0003")["nodes"])
