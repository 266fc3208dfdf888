"""The metrics of the example fleet: what Prometheus reads, from a ledger that says what happened."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from assay.act.ingest.silent_nodes import open_last_seen
from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.projections import read_node_states
from assay.model.entries.faults import FaultEntry
from assay.model.entries.node_entries import DecisionEntry, HoldEntry, TransitionEntry
from assay.model.outcome import Outcome, SuiteRun
from assay.model.specs.node_settings import PoolCapacity
from assay.model.specs.serving import AccessRules
from assay.observe.last_seen import CONTACTS_FILE
from assay.tell.metrics.families import FAMILIES_BY_NAME
from assay.tell.metrics.fleet_metrics import MAX_LISTED_NODES, FleetMetrics, format_metrics
from tests.tell.metrics.conftest import NOW, read

CHECK = "suites/production/test_gpu_health.py::test_gpu_count"


def test_nodes_are_counted_by_state_and_by_what_brought_them_there(context: ControllerContext) -> None:
    moved = TransitionEntry("production", "triage", "d1").make_entry("t1", NOW.isoformat(), "n0003")
    decided = DecisionEntry("d1", "production", "triage", "immediate", "specs/x.yaml:3 gpu-lost", "", (), ())
    context.ledger.append(decided.make_entry("d1", NOW.isoformat(), "n0003"), moved)
    found = read(context)
    assert found["assay_nodes", "false", "h100-a", "gpu-lost", "triage"] == 1
    assert found["assay_nodes", "true", "h100-a", "inventory", "production"] == 13
    assert found["assay_transitions_total", "production", "h100-a", "triage"] == 1
    assert found["assay_state_oldest_age_seconds", "h100-a", "production"] == 3600
    assert found["assay_node_state_age_seconds", "n0003", "h100-a", "triage"] == 0


def test_a_pool_that_declares_its_capacity_is_counted_against_it(context: ControllerContext) -> None:
    wanted = PoolCapacity(delivered=20, spares=2)
    nodes = {
        name: replace(node, settings=node.settings.model_copy(update={"capacity": wanted}))
        for name, node in context.fleet.nodes.items()
        if node.pool == "h100-a"
    }
    read_now = read(replace(context, fleet=replace(context.fleet, nodes=nodes)))
    counts = {name: read_now["assay_pool_capacity_nodes", name, "h100-a"] for name in ("declared", "delivered")}
    assert counts == {"declared": 20, "delivered": 14}
    assert read_now["assay_pool_capacity_nodes", "lacking", "h100-a"] == 6


def test_what_is_in_service_is_counted_as_healthy_and_reserved_and_what_is_out_by_what_took_it_out(
    context: ControllerContext,
) -> None:
    moved = TransitionEntry("production", "triage", "d1").make_entry("t1", NOW.isoformat(), "n0003")
    decided = DecisionEntry("d1", "production", "triage", "immediate", "specs/x.yaml:3 gpu-lost", "", (), ())
    what = ("f1", "gpu.nvlink.down", "h100-a/n0004/gpu1", "degraded", "hardware", "none", 1)
    broken = FaultEntry(*what, NOW.isoformat(), NOW.isoformat(), "", {}, ())
    context.ledger.append(
        decided.make_entry("d1", NOW.isoformat(), "n0003"), moved, broken.make_entry("f1", NOW.isoformat(), "n0004")
    )
    (context.home / CONTACTS_FILE).unlink()
    heard = {(name, "probe"): True for name in context.fleet.nodes if name != "n0005"}
    open_last_seen(context).record_polls(heard, NOW)
    acme = {"visitors": {"acme": {"role": "customer", "pools": ["h100-a"], "token": {"env": "ACME"}}}}
    policy = context.policy.model_copy(update={"access": AccessRules.model_validate(acme)})
    found = read(replace(context, fleet=replace(context.fleet, policies={policy.name: policy})))
    assert found["assay_service_nodes", "byo-b", "reserved"] == 0
    settings = {"settings": context.fleet.nodes["n0006"].settings.model_copy(update={"customer": "acme"})}
    named = {**context.fleet.nodes, "n0006": replace(context.fleet.nodes["n0006"], **settings)}
    by_name = read(replace(context, fleet=replace(context.fleet, nodes=named)))
    assert by_name["assay_service_nodes", "h100-a", "reserved"] == 1
    assert found["assay_service_nodes", "h100-a", "delivered"] == 13
    assert found["assay_service_gpus", "h100-a", "delivered"] == 13 * 8
    assert found["assay_service_nodes", "h100-a", "healthy"] == 11, "n0004 has a fault, n0005 was never read"
    assert found["assay_service_nodes", "h100-a", "reserved"] == 13
    assert found["assay_service_gpus", "byo-b", "healthy"] == 8 * found["assay_service_nodes", "byo-b", "healthy"]
    assert found["assay_nodes_out", "h100-a", "gpu-lost"] == 1
    assert found["assay_nodes_out", "h100-a", "not yet in service"] == 2


def test_a_hold_is_counted_and_dated(context: ControllerContext) -> None:
    at = (NOW - timedelta(minutes=5)).isoformat()
    context.ledger.append(HoldEntry("ann", "looks at it").make_entry("h1", at, "n0004"))
    found = read(context)
    assert found["assay_holds", "h100-a"] == 1
    assert found["assay_holds", "byo-b"] == 0
    assert found["assay_hold_oldest_age_seconds", "h100-a"] == 300


def outcome(context: ControllerContext, node: str, verdict: str, at: datetime) -> Outcome:
    checks = [check for catalog in context.fleet.check_catalogs.values() for check in catalog.checks]
    check = next(one.id for one in checks if "production" in one.phases and one.subject == "node")
    subject = context.fleet.nodes[node].subject
    return Outcome(check, str(subject), node, verdict, "why", evidence_at=at.isoformat())  # type: ignore[arg-type]


def test_the_oldest_pass_of_a_phase_counts_until_its_check_passes_again(context: ControllerContext) -> None:
    old, new = NOW - timedelta(hours=8), NOW - timedelta(hours=1)
    metrics = FleetMetrics(lambda: context)
    ages = []
    for name, n3_at in (("r1", old), ("r2", new)):
        told = [outcome(context, "n0003", "pass", n3_at), outcome(context, "n0004", "pass", new)]
        context.ledger.record(SuiteRun(name, NOW.isoformat()), told, NOW)
        format_metrics(metrics)
        ages.append(read(context)["assay_phase_oldest_pass_age_seconds", "production", "h100-a"])
    assert ages == [8 * 3600, 3600]
    kept = {one.name: one for one in metrics.collect()}["assay_phase_oldest_pass_age_seconds"]
    assert [one.value for one in kept.samples if one.labels["phase"] == "production"] == [3600]
    assert read(context)["assay_phase_unproven_nodes", "production", "h100-a"] == 12


def test_outcomes_are_counted_by_the_file_of_their_check(context: ControllerContext) -> None:
    told = [outcome(context, "n0003", "fail", NOW), outcome(context, "n0004", "pass", NOW)]
    context.ledger.record(SuiteRun("r1", NOW.isoformat()), told, NOW)
    family = told[0].check.partition("::")[0].removeprefix("suites/").removesuffix(".py")
    found = read(context)
    assert (found["assay_outcomes_total", family, "fail"], found["assay_outcomes_total", family, "pass"]) == (1, 1)
    assert (found["assay_runs_total",], found["assay_last_run_age_seconds",]) == (1, 0)


def test_a_process_that_starts_anew_gives_the_same_text(context: ControllerContext) -> None:
    running = FleetMetrics(lambda: context)
    format_metrics(running)
    context.ledger.append(HoldEntry("ann", "looks at it").make_entry("h1", NOW.isoformat(), "n0004"))
    context.ledger.record(SuiteRun("r1", NOW.isoformat()), [outcome(context, "n0003", "pass", NOW)], NOW)
    texts = [format_metrics(one).decode() for one in (running, FleetMetrics(lambda: context))]
    of_the_fleet = [[line for line in text.splitlines() if "collect_cpu" not in line] for text in texts]
    assert of_the_fleet[0] == of_the_fleet[1]


def test_a_source_is_silent_where_its_state_asks_for_checks_and_it_had_time_to_answer(
    context: ControllerContext,
) -> None:
    (context.home / CONTACTS_FILE).unlink()
    context.clock.sleep(8 * 3600)
    now = context.clock.now().isoformat()
    context.ledger.append(TransitionEntry("production", "rma", "d1").make_entry("t1", now, "n0003"))
    context.ledger.append(TransitionEntry("production", "triage", "d2").make_entry("t2", now, "n0004"))
    context.ledger.append(TransitionEntry("production", "test", "d3").make_entry("t3", now, "n0005"))
    in_production = sum(state == "production" for state in _list_states(context))
    before = read(context)
    assert (before["assay_sources", "h100-a", "probe"], before["assay_sources_silent", "h100-a", "probe"]) == (
        in_production + 1,
        in_production,
    ), "one has just come to `test`; nobody asks in rma, triage and onboard"
    open_last_seen(context).record_polls({("n0006", "probe"): True}, context.clock.now())
    after = read(context)
    assert after["assay_sources_silent", "h100-a", "probe"] == in_production - 1
    assert after["assay_source_oldest_answer_age_seconds", "h100-a", "probe"] < 1


def _list_states(context: ControllerContext) -> list[str]:
    return [state.state for state in read_node_states(context.ledger).values() if state.pool == "h100-a"]


def test_every_family_is_there_and_no_other(context: ControllerContext) -> None:
    collected = {family.name: family.type for family in FleetMetrics(lambda: context).collect()}
    listed = {one.name.removesuffix("_total"): one.type for one in FAMILIES_BY_NAME.values()}
    assert collected == listed


def test_nothing_is_0_in_every_pool_until_there_is_something(context: ControllerContext) -> None:
    def list_zeros() -> set[tuple[str, ...]]:
        return {key for key, number in read(context).items() if number == 0}

    assert {name for name, family in FAMILIES_BY_NAME.items() if family.zero} <= {
        name.removesuffix("_count") for name, *_ in list_zeros()
    }, "a panel or an alert on it sees no series"
    open_faults = ("assay_faults_open", "none", "h100-a", "none")
    assert open_faults in list_zeros()
    now, subject = NOW.isoformat(), "h100-a/n0003/gpu6"
    fault = FaultEntry("f1", "gpu.missing", subject, "catastrophic", "hardware", "none", 1, now, now, "gone", {}, ())
    context.ledger.append(fault.make_entry("f1", now, "n0003"))
    assert open_faults not in read(context)
    assert read(context)["assay_faults_open", "gpu.missing", "h100-a", "catastrophic"] == 1


def test_a_ledger_that_cannot_be_read_is_told_and_nothing_is_made_up(context: ControllerContext) -> None:
    said = list[str]()
    metrics = FleetMetrics(lambda: context, said.append)
    context.ledger.file.rename(context.home / "gone")  # type: ignore[union-attr]
    context.ledger.close()
    values = {one.name: [sample.value for sample in one.samples] for one in metrics.collect()}
    assert (values["assay_ledger_up"], values["assay_nodes"]) == ([0], [])
    assert len(said) == 1


def test_nodes_out_of_service_are_listed_up_to_a_bound(context: ControllerContext) -> None:
    names = [f"m{number:04}" for number in range(MAX_LISTED_NODES + 7)]
    example = context.fleet.nodes["n0001"]
    many = {
        name: replace(example, name=name, settings=example.settings.model_copy(update={"serial_number": name}))
        for name in names
    }
    bigger = replace(context, fleet=replace(context.fleet, nodes={**context.fleet.nodes, **many}))
    enroll_nodes(bigger)
    found = read(bigger)
    listed = [key for key in found if key[0] == "assay_node_state_age_seconds"]
    assert (len(listed), found["assay_nodes_unlisted",]) == (MAX_LISTED_NODES, 9)


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool, of the Debian package prometheus")
def test_promtool_finds_nothing_to_mend(context: ControllerContext) -> None:
    text = format_metrics(FleetMetrics(lambda: context))
    judged = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (judged.returncode, judged.stdout, judged.stderr) == (0, b"", b"")
