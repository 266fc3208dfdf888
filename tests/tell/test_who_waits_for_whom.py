"""Who waits for whom, and what fault is open: every surface gives the answer of the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest
from starlette.applications import Starlette
from typer.testing import CliRunner

from assay.cli.app import app
from assay.decide.faults.incidents import list_incidents
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.tell.api import conditional_answers
from assay.tell.metrics.fleet_metrics import FleetMetrics, format_metrics
from assay.tell.pages import page_routes
from tests.decide.conftest import Paper
from tests.support.noted_readings import note_readings
from tests.tell.asgi_calls import Caller, make_state
from tests.tell.fleet_with_history import copy_fleet

WAITS = {
    "n0003": ("technicians and engineers", ""),
    "n0005": ("ann", ""),
    "n0006": ("running jobs", "jobs"),
    "n0008": ("the limits of the policy", "limits"),
    "n0019": ("whoever answers for the pool", "breaker"),
}
"""Node → who must act, and the `blocker` of the metric; "" where no decision waits."""


def tell_history(fleet: Fleet) -> Paper:
    """Return nodes that wait for technicians, a person, a job, a limit, and a breaker."""
    paper = Paper(fleet.policy, fleet.fault_catalog, dict(fleet.profiles))
    paper.lines = dict(fleet.lines)
    paper.now = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2)
    for node in fleet.nodes.values():
        pool, profile = ("other", "managed") if node.pool == "byo-b" else (node.pool, node.profile)
        paper.add(node.name, "production", pool=pool, rack=node.rack, serial=node.serial, profile=profile)
    paper.jobs["n0006"] = ("job 4711",)
    paper.fault("n0006", "gpu.nvlink.down", "gpu2")
    paper.step()
    for node, fault in (
        ("n0003", "gpu.xid.79"),
        ("n0004", "gpu.missing"),
        ("n0007", "gpu.xid.79"),
        ("n0008", "gpu.missing"),
    ):
        paper.later(hours=5)
        paper.fault(node, fault, "gpu4")
        paper.step()
        paper.settle(node)
    for node in ("n0017", "n0018", "n0019", "n0020"):
        paper.fault(node, "gpu.xid.79", "gpu4")
    paper.step()
    paper.say("hold", "n0005")
    return paper


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    fleet = copy_fleet(tmp_path_factory.mktemp("fleet"))
    ledger = Ledger.open(fleet.root / ".assay" / "ledger.sqlite")
    ledger.append(*tell_history(fleet).log.values())
    ledger.close()
    note_readings(fleet.root)
    return fleet


@pytest.fixture(scope="module")
def site(fleet: Fleet) -> Caller:
    state = make_state(fleet, fleet.root / ".assay")
    return Caller.reading(Starlette(routes=[*page_routes.routes(state), *conditional_answers.routes(state)]))


def ask(fleet: Fleet, *words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--fleet", str(fleet.root)], catch_exceptions=False)
    return " ".join(result.stdout.split())


def read(site: Caller, path: str) -> str:
    reply = site.get(path)
    assert reply.status == 200
    return unescape(reply.body.decode())


@pytest.mark.parametrize("node", WAITS)
def test_every_surface_names_the_same_one(site: Caller, fleet: Fleet, node: str) -> None:
    who, _ = WAITS[node]
    step = site.get(f"/api/v1/nodes/{node}").json["details"]["next"]
    assert step["who"] == who
    assert site.get(f"/api/v1/nodes/{node}/explain").json["next"] == step
    assert f"→ {who}: {step['task']}" in ask(fleet, "status", "--node", node) or node == "n0005"
    assert who in ask(fleet, "explain", node)
    rack = fleet.nodes[node].rack
    assert f"<b>Next:</b> {who}: {step['task']}" in read(site, f"/racks/{rack}")
    assert f"Next: {who}." in read(site, f"/nodes/{node}") or "Held by ann" in read(site, f"/nodes/{node}")
    home = read(site, "/").partition("<h2>Waiting</h2>")[2].partition("</section>")[0]
    group = home.partition(f"for {who}")[2].partition("</details>")[0]
    assert f'href="/nodes/{node}"' in group


def test_a_metric_counts_what_waits_by_what_it_waits_for(fleet: Fleet, tmp_path: Path) -> None:
    text = format_metrics(FleetMetrics(lambda: make_state(fleet, fleet.root / ".assay").context)).decode()
    waits = [line for line in text.splitlines() if line.startswith("assay_pending_decisions{")]
    for _, blocker in WAITS.values():
        assert not blocker or any(f'blocker="{blocker}"' in line for line in waits), waits


def test_a_fault_is_open_on_each_surface_until_something_clears_it(site: Caller, fleet: Fleet) -> None:
    states = make_state(fleet, fleet.root / ".assay").records.read_node_states()
    shown = read(site, "/")
    text = format_metrics(FleetMetrics(lambda: make_state(fleet, fleet.root / ".assay").context)).decode()
    counted = sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("assay_faults_open{"))
    assert counted == sum(fault.is_open for state in states for fault in state.faults) > 5
    for state in states:
        opened = [each for each in list_incidents(fleet.fault_relations, state) if each.is_open]
        assert bool(opened) == bool(state.open_faults)
        assert (f"{state.node} !<" in shown) == bool(opened), state.node
        assert ('aria-label="Incident 1"' in read(site, f"/nodes/{state.node}")) == bool(opened)
