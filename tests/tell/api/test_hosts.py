"""Nodes as machines, what groups of them deliver, and what was last read of one: each figure follows the records."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from assay.adapters.scheduler import CustomerJob, SchedulerNodeStatus, StatusReadings
from assay.decide.state.node_state import NodeState
from assay.model.evidence import EvidenceDocument
from assay.observe.evidence_store import EvidenceStore
from assay.tell.server.app_state import AppState
from assay.tell.views import hosts
from assay.tell.views.hosts import HostReader
from assay.tell.views.pool_delivery import NodeReliability, measure_node
from tests.tell.asgi_calls import Caller

API = "/api/v1"
VALUE = {"value": "A1234567"}
READ = {
    "probe": {
        "host": {"serial": VALUE, "board": {"serial": {"absent": "none"}}},
        "gpu": {"devices": {"0000:1b:00.0": {"serial": {"value": "5401292671248"}}}},
        "nic": {"eth0": {"mac": {"value": "b8:3f:d2:5f:d5:d6"}}},
    },
    "bmc": {
        "firmware": {"HGX_FW_NVSwitch_0": {"value": "96.10"}, "BMC": {"failed": "no answer"}},
        "event_log": {"cursors": {"value": {"SEL": "7@2026-11-16T16:54:49+00:00#2,1"}}},
        "fan": {"failed": "the BMC did not answer"},
    },
}


@pytest.fixture(scope="module")
def host(state: AppState, ann: Caller) -> dict[str, Any]:
    """Return n0008 as the API tells it, after it was read."""
    at = state.records.clock.now() - timedelta(minutes=1)
    EvidenceStore(state.records.data_dir / "evidence").store_latest(EvidenceDocument("n0008", at, READ))
    page = ann.get(f"{API}/hosts?node=n0008").json
    assert (page["total"], page["next"]) == (1, "")
    return page["hosts"][0]


def test_a_node_is_told_with_what_never_changes_and_what_was_read(host: dict[str, Any], state: AppState) -> None:
    declared = state.context.fleet.nodes["n0008"]
    assert (host["machine"], host["pool"], host["rack"]) == (declared.serial, declared.pool, declared.rack)
    parts = {(part["kind"], part["serial"]) for part in host["parts"]}
    assert {("chassis", "A1234567"), ("baseboard", ""), ("nic", "b8:3f:d2:5f:d5:d6")} <= parts
    assert host["firmware"] == {"HGX_FW_NVSwitch_0": "96.10"}, "what did not answer has no version"
    assert host["bmc_logs"] == [{"log": "SEL", "newest": "7@2026-11-16T16:54:49+00:00", "critical": 2, "warning": 1}]
    assert host["customers"] == ["acme"]
    assert host["gpus"] == 8
    assert (host["agent_at"], host["agent_runs"]) == ("", False)


def test_what_was_not_read_is_unknown_and_an_open_fault_is_unhealthy(host: dict[str, Any], ann: Caller) -> None:
    assert host["components"]["gpu"]["health"] == "healthy"
    assert {host["components"][name]["health"] for name in ("cooling", "memory", "storage")} == {"unknown"}
    [faulty] = ann.get(f"{API}/hosts?node=n0006").json["hosts"]
    assert faulty["in_service"]
    assert faulty["health"] == "unhealthy"
    assert faulty["components"]["gpu"]["health"] == "unhealthy"
    assert any(fault.startswith("gpu.nvlink.down ") for fault in faulty["components"]["gpu"]["faults"])


def test_pages_together_have_every_node_once(ann: Caller) -> None:
    names, after = list[str](), ""
    while True:
        page = ann.get(f"{API}/hosts?limit=7&after={after}").json
        names += [host["node"] for host in page["hosts"]]
        if not (after := page["next"]):
            break
    assert len(names) == len(set(names)) == page["total"]


def test_groups_agree_with_their_nodes(ann: Caller) -> None:
    hosts = ann.get(f"{API}/hosts?limit=200").json["hosts"]
    groups = {(group["kind"], group["name"]): group for group in ann.get(f"{API}/capacity").json}
    fleet = groups["fleet", ""]
    assert fleet["delivered"]["nodes"] == sum(each["in_service"] for each in hosts)
    assert fleet["healthy"]["nodes"] == sum(host["in_service"] and host["health"] == "healthy" for host in hosts)
    assert fleet["delivered"]["gpus"] == sum(host["gpus"] for host in hosts if host["in_service"])
    out = {node: each["reason"] for each in fleet["out"] for node in each["nodes"]}
    assert out == {host["node"]: host["out_because"] for host in hosts if not host["in_service"]}
    for kind in ("pool", "rack", "spec"):
        ours = [group for (known, _), group in groups.items() if known == kind]
        assert sum(group["delivered"]["nodes"] for group in ours) == fleet["delivered"]["nodes"]
    assert groups["customer", "acme"]["reserved"] == groups["pool", "h100-a"]["delivered"] == fleet["reserved"]
    [rack] = ann.get(f"{API}/capacity?kind=rack&name=lab1/r02").json
    held, then = rack.pop("reliability"), groups["rack", "lab1/r02"].pop("reliability")
    assert (rack, held | {"since": then["since"]}) == (groups["rack", "lab1/r02"], then)
    [out] = rack["out"]
    assert (out["nodes"], held["failures"], held["in_repair"], held["mttr_hours"]) == (["n0007"], 1, 1, None)
    assert held["mtbf_hours"] == held["up_hours"] > 0


def test_nodes_are_active_where_the_scheduler_tells_jobs_and_not_known_where_it_does_not(state: AppState) -> None:
    records = state.records
    states = {one.node: one for one in records.read_node_states()}
    busy = SchedulerNodeStatus((CustomerJob("7", "train", "eve", "2026-11-30T10:00:00+00:00"),))

    def tell(silent: str) -> dict[str, Any]:
        statuses = {name: busy if name == "n0008" else SchedulerNodeStatus() for name in states if name != silent}
        readings = StatusReadings(frozenset(states), statuses, {silent: "no answer"})
        reader = HostReader(records, states, lambda _: readings)
        return {(group.kind, group.name): group.active for group in reader.list_groups()}

    active = tell("")
    assert (active["fleet", ""].nodes, active["fleet", ""].gpus) == (1, 8)
    assert tell("n0009")["fleet", ""] is None, "unknown is no number"


def test_a_history_is_read_once_for_all_groups_of_its_node(state: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    states, read = {one.node: one for one in state.records.read_node_states()}, list[str]()

    def measure(fleet: Any, one: NodeState, *times: Any) -> NodeReliability:
        read.append(one.node)
        return measure_node(fleet, one, *times)

    monkeypatch.setattr(hosts, "measure_node", measure)
    reader = HostReader(state.records, states, lambda names: StatusReadings(frozenset(names), {}, {}))
    groups = list(reader.list_groups())
    assert len(groups) > 5
    assert sorted(read) == sorted(states)
    [rack] = HostReader(state.records, states, reader.ask).list_groups("rack", "lab1/r02")
    assert rack.delivered.nodes < len(read) - len(states) < len(states), "one rack reads its own nodes"


def test_readings_are_told_by_branch_with_the_digest_that_outcomes_name(host: dict[str, Any], ann: Caller) -> None:
    answer = ann.get(f"{API}/nodes/n0008/readings?path=bmc/firmware").json
    assert answer["readings"] == READ["bmc"]["firmware"]
    assert len(answer["digest"]) == 64
    assert ann.get(f"{API}/nodes/n0008/readings?path=bmc/none").json["readings"] is None
    assert ann.get(f"{API}/nodes/nowhere/readings").status == 404


def test_a_console_is_searched_and_one_that_nobody_records_is_not_there(state: AppState, ann: Caller) -> None:
    folder = state.records.data_dir / "consoles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "n0008.log").write_text("".join(f"[Tue Dec  1 04:31:{n} 2026]line {n}\r\n" for n in range(10, 30)))
    answer = ann.get(f"{API}/nodes/n0008/console?text=LINE&limit=2").json
    assert [line["text"] for line in answer["lines"]] == ["line 28", "line 29"]
    assert (answer["since"], answer["kept_days"]) == ("2026-12-01T04:31:10+00:00", 31)
    assert ann.get(f"{API}/nodes/n0008/console?hours=0.001").json["lines"] == []
    assert ann.get(f"{API}/nodes/n0008/console?hours=-1").status == 422
    for name in ("n0009", "nowhere", "..%2Fn0008"):
        assert ann.get(f"{API}/nodes/{name}/console").status == 404


def test_customers_learn_no_serial_numbers(acme: Caller) -> None:
    for path in ("/hosts", "/capacity", "/nodes/n0008/readings", "/nodes/n0008/console"):
        assert acme.get(f"{API}{path}").status == 403, path
