"""The steps of deploy/ai-cloud-validation, asked of a server: each document has what NVIDIA's checks read."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from assay.model.timestamps import format_time, hours, parse_time
from assay.tell.server.app_state import AppState
from tests.support.places import ROOT
from tests.tell.asgi_calls import Caller

FOLDER = ROOT / "deploy/ai-cloud-validation"


@pytest.fixture(scope="module")
def steps() -> ModuleType:
    spec = importlib.util.spec_from_file_location("assay_step", FOLDER / "assay_step.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ask(
    steps: ModuleType,
    ann: Caller,
    acme: Caller,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Any:
    """Return a function that runs a step as the suite does, with requests that reach the server without a socket."""
    callers = {"ASSAY_TOKEN_FILE": ann, "ASSAY_CUSTOMER_TOKEN_FILE": acme}
    (tmp_path / "token").write_text("a token\n")
    monkeypatch.setenv("ASSAY_SERVER", "https://assay.example.org")
    for name in callers:
        monkeypatch.setenv(name, str(tmp_path / "token"))
    begin = steps.Api.__init__

    def remember(api: Any, holder: str = "ASSAY_TOKEN_FILE") -> None:
        begin(api, holder)
        api.caller = callers[holder]

    def answer(api: Any, path: str, body: Any = None) -> Any:
        caller = api.caller
        path = f"/api/v1{path}"
        reply = caller.get(path) if body is None else caller.post(path, body, content_type="application/json")
        if reply.status >= 300:
            raise steps.Refused(f"{reply.status}: {reply.json['detail']}")
        return reply.json

    monkeypatch.setattr(steps.Api, "__init__", remember)
    monkeypatch.setattr(steps.Api, "ask", answer)

    def run(step: str, *words: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["assay_step.py", step, "--patience", "0", *words])
        code = steps.main()
        document = json.loads(capsys.readouterr().out)
        assert (code == 0) is document["success"]
        return document

    return run


def test_each_step_that_the_suite_calls_is_there(steps: ModuleType) -> None:
    bound = [
        step
        for path in (FOLDER / "config").glob("*.yaml")
        for platform in yaml.safe_load(path.read_text())["commands"].values()
        for step in platform["steps"]
    ]
    assert {step["name"] for step in bound} == set(steps.STEPS)
    assert all(step["command"] == f"python ../assay_step.py {step['name']}" for step in bound)
    assert all(f"`{name}`" in (FOLDER / "README.md").read_text() for name in steps.STEPS)


def test_what_is_asked_is_answered_from_records(ask: Any, state: AppState) -> None:
    nodes = state.context.fleet.nodes
    assert ask("query_governance_metrics")["metrics"]["delivered"]["nodes"] > 0
    inventory = ask("query_fleet_inventory")["nodes"]
    assert {one["node_id"] for one in inventory} <= {node.serial for node in nodes.values()}
    assert {one["health_state"] for one in inventory} >= {"healthy", "unhealthy"}
    sick = [host for host in ask("query_host_health")["hosts"] if not host["healthy"]]
    assert sick
    assert all(host["alerts"] for host in sick), "an unhealthy host says why"
    for group in ask("query_health_aggregation")["groups"]:
        assert group["healthy"] + group["unhealthy"] == group["total"]
    agents = ask("query_node_health_agents")["agents"]
    assert not any(agent["running"] for agent in agents), "no agent was heard"
    assert not any(host["kernel_log_available"] for host in ask("query_bmc_kernel_logs")["hosts"]), "no BMC was read"
    assert ask("query_retirement_notices")["notices"] == []
    assert ask("cordon_node", "--machine-id", "nowhere")["error"].startswith("there is no node")


def test_orders_are_real_and_nothing_is_said_to_be_done_before_its_proof(ask: Any, state: AppState) -> None:
    states = state.records.read_node_states()
    free = [one.node for one in states if one.state == "production" and not one.hold and not one.move_request]
    reset = ask("reset_gpus", "--machine-id", free[-1])
    assert (reset["operation"]["requested"], reset["operation"]["completed"]) == (True, False), (
        "no controller runs here"
    )
    assert reset["operation"]["node_id"] == free[-1]
    returned = ask("return_node_maintenance", "--machine-id", free[-2])["operation"]
    assert (returned["accepted"], returned["maintenance_mode"]) == (True, "draining")
    replaced = ask("request_host_replacement", "--machine-id", free[-3])["operation"]
    assert replaced["node_removed_from_pool"] is False
    refused = ask("return_rack_maintenance", "--rack-id", "nowhere")
    assert refused["error"].startswith("404")
    events = ask("query_maintenance_events")
    assert events["events_queryable"]
    assert {free[-1], free[-2], free[-3]} <= {event["machine_id"] for event in events["events"]}
    assert ask("query_repair_history")["history_queryable"]


def test_customers_are_told_by_their_own_token(ask: Any, ann: Caller, state: AppState) -> None:
    at = parse_time(state.context.now)
    theirs = [one for one in state.records.read_node_states() if one.pool == "h100-a"]
    body = {"operation": "reimage", "nodes": [theirs[0].node], "reason": "a new image", "key": "key-of-suite-1"}
    window = {"starts_at": format_time(at + hours(100)), "ends_at": format_time(at + hours(104))}
    made = ann.post("/api/v1/operations", {**body, **window}, content_type="application/json")
    assert made.status == 202, made.body
    planned = ask("query_planned_notifications")["notifications"]
    assert [(one["machine_id"], one["event_id"]) for one in planned if one["event_id"] == made.json["id"]] == [
        (theirs[0].node, made.json["id"])
    ]
    failures = ask("query_failure_notifications")
    serving = state.context.policy.states_in_service
    now = [one for one in failures["notifications"] if one["type"] == "failure"]
    assert {one["machine_id"] for one in now} == {one.node for one in theirs if one.state not in serving}
    earlier = [one for one in failures["notifications"] if one["type"] == "left service"]
    assert earlier
    for one in earlier:
        [entry] = state.context.ledger.entries(after=one["ledger_entry"] - 1, most=1)
        assert (entry.node, entry.kind, entry.at) == (one["machine_id"], "transition", one["notified_at"])
