#!/usr/bin/env python3
"""One step of NVIDIA's suite for AI clouds (NVIDIA/ai-cloud-validation), answered by the API of `assay serve`.

    python assay_step.py reset_gpus --machine-id n0007

It prints the JSON document that the step's checks read. Standard library only; README.md beside it says how to bind it.
Environment: ASSAY_SERVER (https://…), ASSAY_TOKEN_FILE (an operator's token), ASSAY_CUSTOMER_TOKEN_FILE (a customer's),
ASSAY_CA (the file of the server's authority).
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Document = dict[str, Any]
POLL_S = 5.0
READ_WITHIN_S = 3600.0
DISCOVERY_POLLS = 2
GPUS = "probe/gpu/devices"
ENDED = ("succeeded", "failed", "cancelled")


STEPS: dict[str, Callable[[argparse.Namespace], Document]] = {}
"""The steps by name. A provider's config calls them."""


def _step(function: Callable[[argparse.Namespace], Document]) -> Callable[[argparse.Namespace], Document]:
    STEPS[function.__name__] = function
    return function


class Refused(Exception):
    """The API refused, or did not answer; the text says why."""


class Api:
    """The API of one server, for the holder of one token."""

    def __init__(self, holder: str = "ASSAY_TOKEN_FILE") -> None:
        self._server = os.environ["ASSAY_SERVER"].rstrip("/")
        self._token = Path(os.environ[holder]).read_text().strip()
        self._tls = ssl.create_default_context(cafile=os.environ.get("ASSAY_CA"))

    def ask(self, path: str, body: Document | None = None) -> Any:
        """Return the answer to a GET, or to a POST of `body`. Raises Refused."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        call = urllib.request.Request(f"{self._server}/api/v1{path}", data, headers)  # noqa: S310 — the site's own server
        try:
            with urllib.request.urlopen(call, timeout=60, context=self._tls) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            raise Refused(f"{refusal.code}: {json.loads(refusal.read() or b'{}').get('detail', '')}") from None
        except OSError as lost:
            raise Refused(str(lost)) from None

    def list_hosts(self) -> list[Document]:
        """Return every node with its machine, in pages."""
        hosts: list[Document] = []
        after = ""
        while True:
            page = self.ask(f"/hosts?limit=200&after={after}")
            hosts += page["hosts"]
            if not (after := page["next"]):
                return hosts

    def find_host(self, name: str) -> Document:
        """Return one node. Raises Refused if there is none."""
        hosts: list[Document] = self.ask(f"/hosts?node={name}")["hosts"]
        if not hosts:
            raise Refused(f"there is no node {name!r}")
        return hosts[0]

    def read(self, node: str, path: str) -> Document:
        """Return a branch of what was last read of a node."""
        answer: Document = self.ask(f"/nodes/{node}/readings?path={path}")
        return answer

    def order(self, operation: str, **what: Any) -> Document:
        """Order an operation, and return its record."""
        body = {"operation": operation, "reason": "NVIDIA's suite asks for it", "key": uuid.uuid4().hex, **what}
        record: Document = self.ask("/operations", body)
        return record

    def follow(self, record: Document, patience_s: float) -> Document:
        """Return the operation when it has ended, or after so many seconds as it is then."""
        ends_at = time.monotonic() + patience_s
        while record["state"] not in ENDED and time.monotonic() < ends_at:
            time.sleep(POLL_S)
            record = self.ask(f"/operations/{record['id']}")
        return record


@_step
def reset_gpus(options: argparse.Namespace) -> Document:
    """BFX01-01: reset all GPUs of a node. `--now` is the suite's: it does not wait for jobs."""
    api = Api()
    record = api.follow(api.order("gpu-reset", nodes=[options.machine_id], now=True), options.patience)
    [node] = record["nodes"]
    return {"operation": _describe(record, completed=record["state"] == "succeeded", node_id=node["node"])}


@_step
def return_node_maintenance(options: argparse.Namespace) -> Document:
    """BFX01-02: give a node back for maintenance."""
    record = Api().order("maintenance", nodes=[options.machine_id])
    return {"operation": _describe(record, machine_id=options.machine_id, maintenance_mode=record["to"])}


@_step
def return_rack_maintenance(options: argparse.Namespace) -> Document:
    """BFX01-03: give a rack back for maintenance."""
    return {"operation": _describe(Api().order("maintenance", rack=options.rack_id), rack_id=options.rack_id)}


@_step
def cordon_node(options: argparse.Namespace) -> Document:
    """BFX01-04: let no new work start on a node; what its scheduler says afterwards is the proof."""
    api, name = Api(), options.machine_id
    before = api.find_host(name)["jobs"]
    record = api.follow(api.order("cordon", nodes=[name]), options.patience)
    host = _wait(lambda: api.find_host(name), lambda host: bool(host["closed"]), options.patience)
    operation = {
        "cordoned": record["state"] == "succeeded",
        "new_workloads_blocked": bool(host["closed"]),
        "existing_workloads_running": bool(before) and set(before) <= set(host["jobs"]),
        "jobs_before": before,
        "jobs_after": host["jobs"],
    }
    return {"operation": _describe(record, **operation)}


@_step
def request_host_replacement(options: argparse.Namespace) -> Document:
    """BFX01-05: ask for a replacement; the node leaves its pool."""
    api = Api()
    record = api.follow(api.order("replace", nodes=[options.machine_id], now=True), options.patience)
    serves = api.ask(f"/nodes/{options.machine_id}")["node"]["in_service"]
    return {"operation": _describe(record, machine_id=options.machine_id, node_removed_from_pool=not serves)}


@_step
def query_maintenance_events(_: argparse.Namespace) -> Document:
    """BFX02-01: planned and present maintenance of each node."""
    records = Api().ask("/operations?open=true&limit=1000")
    return {"events_queryable": True, "events": [event for record in records for event in _list_events(record)]}


@_step
def query_retirement_notices(_: argparse.Namespace) -> Document:
    """BFX02-02: which nodes retire, and when; as customers are told."""
    records = Api("ASSAY_CUSTOMER_TOKEN_FILE").ask("/operations?limit=1000")
    retired = [record for record in records if record["operation"] == "retire"]
    return {"notices_queryable": True, "notices": [event for record in retired for event in _list_events(record)]}


@_step
def query_repair_history(_: argparse.Namespace) -> Document:
    """BFX02-03: the repairs of each machine, by the id that no repair changes."""
    machines: dict[str, list[Document]] = defaultdict(list)
    for repair in Api().ask("/repairs?limit=1000"):
        machines[repair["machine"]].append(repair)
    records = [{"machine_id": machine, "entries": entries} for machine, entries in machines.items()]
    return {"history_queryable": True, "records": records}


@_step
def query_serial_numbers(_: argparse.Namespace) -> Document:
    """BFX03-01: what tells each part of a node from all others."""
    kinds = {
        "chassis": ("chassis",),
        "baseboard": ("baseboard",),
        "cpu": ("cpu",),
        "gpu": ("gpu",),
        "nic": ("hca", "nic"),
    }
    machines = []
    for host in Api().list_hosts():
        serials = {
            name: [part["serial"] for part in host["parts"] if part["kind"] in known] for name, known in kinds.items()
        }
        components = {
            name: {"present": bool(found), "identifiers": [serial for serial in found if serial]}
            for name, found in serials.items()
        }
        machines.append({"machine_id": host["machine"], "node": host["node"], "components": components})
    return {"machines_checked": len(machines), "machines": machines}


@_step
def query_switch_firmware(_: argparse.Namespace) -> Document:
    """BFX03-02: the firmware of each NVSwitch, as the BMC of its baseboard or tray tells it."""
    trays = [
        {"tray_id": f"{host['machine']}/{name}", "firmware_version": version}
        for host in Api().list_hosts()
        for name, version in host["firmware"].items()
        if "nvswitch" in name.lower()
    ]
    return {"trays": trays}


@_step
def query_bmc_kernel_logs(_: argparse.Namespace) -> Document:
    """BFX03-03: the logs of each node's BMC, and up to which entry they were read."""
    hosts = [
        {"host_id": host["node"], "kernel_log_available": bool(host["bmc_logs"]), "logs": host["bmc_logs"]}
        for host in Api().list_hosts()
    ]
    return {"hosts": hosts}


@_step
def query_node_health_agents(_: argparse.Namespace) -> Document:
    """BFX04-01: assay's agent on each node, heard within the time that the policy allows."""
    agents = [
        {
            "node_id": host["node"],
            "agent_name": "assay agent",
            "running": host["agent_runs"],
            "last_heard": host["agent_at"],
        }
        for host in Api().list_hosts()
        if host["in_service"]
    ]
    return {"agents_observable": True, "agents": agents}


@_step
def query_planned_notifications(_: argparse.Namespace) -> Document:
    """BFX05-01: what a customer's own token is told of planned work."""
    records = Api("ASSAY_CUSTOMER_TOKEN_FILE").ask("/operations?open=true&limit=1000")
    planned = [event for record in records if record["starts_at"] for event in _list_events(record)]
    return {"notification_channel_observable": True, "notifications": planned}


@_step
def query_failure_notifications(_: argparse.Namespace) -> Document:
    """BFX06-01: what a customer's own token is told of nodes that left service, before and now."""
    api = Api("ASSAY_CUSTOMER_TOKEN_FILE")
    gone = [node for node in api.ask("/nodes?limit=1000")["nodes"] if not node["in_service"]]
    notices = [
        {
            "machine_id": change["node"],
            "type": "left service",
            "message": f"{change['node']} left service",
            "notified_at": change["at"],
            "ledger_entry": change["seq"],
        }
        for change in _list_changes(api)
        if not change["body"]["in_service"]
    ]
    notices += [
        {
            "machine_id": node["node"],
            "type": "failure",
            "message": json.dumps(api.ask(f"/nodes/{node['node']}")["details"]),
            "notified_at": node["since"],
        }
        for node in gone
    ]
    return {"notification_channel_observable": True, "notifications": notices}


@_step
def query_governance_metrics(_: argparse.Namespace) -> Document:
    """CAP01-01: nodes and GPUs that are delivered, healthy, reserved and active."""
    [fleet] = Api().ask("/capacity?kind=fleet")
    if fleet["active"] is None:
        raise Refused("a scheduler does not tell which jobs run")
    return {"metrics": {name: fleet[name] for name in ("delivered", "healthy", "reserved", "active")}}


@_step
def query_fleet_inventory(_: argparse.Namespace) -> Document:
    """CAP02-01: a record for each node. Its workload is its first job; its account and project are its customer."""
    nodes = [
        {
            "node_id": host["machine"],
            "health_state": host["health"],
            "instance_id": (host["jobs"] or [""])[0],
            "created_at": host["created_at"],
            "hardware_type": host["spec"],
            "gpu_count": host["gpus"],
            "account_id": (host["customers"] or [host["pool"]])[0],
            "project_id": host["pool"],
            "in_use": bool(host["jobs"]),
            "region": host["site"],
        }
        for host in Api().list_hosts()
    ]
    return {"nodes_checked": len(nodes), "nodes": nodes}


@_step
def query_resource_discovery(_: argparse.Namespace) -> Document:
    """CAP03-01: what was delivered, by ids that stay, asked more than once."""
    api, first = Api(), set[str]()
    for poll in range(DISCOVERY_POLLS):
        hosts = api.list_hosts()
        first = first or {host["machine"] for host in hosts}
        time.sleep(POLL_S if poll + 1 < DISCOVERY_POLLS else 0)
    resources = [
        {
            "resource_id": host["machine"],
            "discovered": bool(host["read_at"]),
            "delivery_reason": f"enrolled in {host['pool']} at {host['created_at']}",
        }
        for host in hosts
    ]
    return {
        "polls": DISCOVERY_POLLS,
        "poll_interval_seconds": int(POLL_S),
        "unstable_identifiers": sorted(first - {host["machine"] for host in hosts}),
        "resources_checked": len(resources),
        "resources": resources,
    }


@_step
def query_host_health(_: argparse.Namespace) -> Document:
    """CAP05-01: how each node in service is, by component, and how old its readings are."""
    hosts = []
    for host in (host for host in Api().list_hosts() if host["in_service"]):
        components = host["components"]
        alerts = [
            {"id": name, "target": host["node"], "message": ", ".join(each["faults"]), "classifications": ["Fault"]}
            for name, each in components.items()
            if each["health"] == "unhealthy"
        ]
        if host["health"] != "healthy" and not alerts:
            alerts = [{"id": "node", "target": host["node"], "message": host["health"], "classifications": ["Node"]}]
        hosts.append(
            {
                "host_id": host["machine"],
                "status": host["state"],
                "health_present": bool(host["read_at"]),
                "healthy": host["health"] == "healthy",
                "observed_age_seconds": None if host["age_s"] is None else int(host["age_s"]),
                "probe_ids": [name for name, each in components.items() if each["health"] != "unknown"],
                "alerts": alerts,
                "components": components,
            }
        )
    return {"hosts_checked": len(hosts), "hosts": hosts}


@_step
def query_health_aggregation(_: argparse.Namespace) -> Document:
    """CAP05-02: the health of each pool, rack, spec and customer, in service or out."""
    groups = []
    for group in Api().ask("/capacity"):
        total = group["delivered"]["nodes"] + sum(len(each["nodes"]) for each in group["out"])
        unhealthy = group["unhealthy"]
        groups.append(
            {
                "group_id": f"{group['kind']}/{group['name']}",
                "group_type": group["kind"],
                "name": f"{group['kind']} {group['name']}".strip(),
                "total": total,
                "healthy": total - len(unhealthy),
                "unhealthy": len(unhealthy),
                "status": "Degraded" if unhealthy else "Healthy",
                "unhealthy_hosts": unhealthy,
            }
        )
    return {"aggregation_level": "pool, rack, spec and customer", "groups": groups}


@_step
def verify_ingestion(_: argparse.Namespace) -> Document:
    """HWING01-01: every machine of the inventory and of its deliveries, and which of them are there and well."""
    api = Api()
    hosts, known = api.list_hosts(), api.ask("/machines")
    machines = [
        {
            "chassis_serial": next((part["serial"] for part in host["parts"] if part["kind"] == "chassis"), ""),
            "expected_machine_id": host["node"],
            "machine_id": host["machine"] if host["read_at"] else None,
            "status": ("InUse" if host["jobs"] else "Ready") if host["in_service"] else host["state"],
            "health": host["health"],
            "gpu_count": host["gpus"],
        }
        for host in hosts
    ]
    missing = [each for each in machines if each["machine_id"] is None]
    delivered = [each for each in known["not_seen"] if each["delivery"]]
    missing += [{"machine_id": each["node"]} for each in delivered]
    ingested = [each for each in machines if each["machine_id"]]
    return {
        "expected_count": len(machines) + len(delivered),
        "ingested_count": len(ingested),
        "matched_count": sum(each["machine_id"] == each["chassis_serial"] for each in ingested),
        "missing": missing,
        "extra": [{"machine_id": each["seen"]["serial"]} for each in known["machines"] if each["verdict"] != "node"],
        "machines": machines,
    }


@_step
def launch_instance(options: argparse.Namespace) -> Document:
    """The node on which the suite works: it serves already, for whoever manages nodes launches none."""
    return _describe_instance(_serve(Api(), options))


@_step
def describe_instance(options: argparse.Namespace) -> Document:
    """How that node is now."""
    return _describe_instance(Api().find_host(options.machine_id))


@_step
def reboot_instance(options: argparse.Namespace) -> Document:
    """CNP01-05: a restart, proved by another boot and by readings since."""
    begun, boots, host, record = _restart("reboot", options)
    return {
        **_describe_instance(host),
        "reboot_initiated": True,
        "reboot_confirmed": record["state"] == "succeeded" and boots[0]["value"] != boots[1].get("value"),
        "ssh_ready": host["read_at"] > begun,
        "message": record["nodes"][0]["text"],
    }


@_step
def power_cycle_instance(options: argparse.Namespace) -> Document:
    """CNP01-06: power off and on again, proved by the BMC and by another boot."""
    begun, boots, host, record = _restart("power-cycle", options)
    is_other_boot = boots[0]["value"] != boots[1].get("value")
    return {
        **_describe_instance(host),
        "power_cycle_initiated": True,
        "power_was_off": record["state"] == "succeeded" and is_other_boot,
        "ssh_ready": host["read_at"] > begun,
        "message": record["nodes"][0]["text"],
    }


@_step
def stop_instance(options: argparse.Namespace) -> Document:
    """CNP01-07: power off, read back from the BMC."""
    api = Api()
    record = api.follow(api.order("power-off", nodes=[options.machine_id], now=True), options.patience)
    is_off = record["state"] == "succeeded"
    state = "stopped" if is_off else record["nodes"][0]["text"]
    return {"instance_id": api.find_host(options.machine_id)["machine"], "stop_initiated": True, "state": state}


@_step
def start_instance(options: argparse.Namespace) -> Document:
    """CNP01-08: power on, then readings of the node and its return to service."""
    api = Api()
    begun = api.find_host(options.machine_id)["read_at"]
    record = api.follow(api.order("power-on", nodes=[options.machine_id]), options.patience)
    host = _serve(api, options)
    ready = record["state"] == "succeeded" and host["read_at"] > begun
    return {**_describe_instance(host), "start_initiated": True, "ssh_ready": ready}


@_step
def telemetry_delivery_latency(_: argparse.Namespace) -> Document:
    """OBS05-01: how old the newest readings are that the API has."""
    ages = [host["age_s"] for host in Api().list_hosts() if host["age_s"] is not None]
    probes = {"observed_delivery_seconds": int(min(ages, default=0.0)), "telemetry_source": "assay API /hosts"}
    names = ("telemetry_endpoint_reachable", "delivery_sample_present", "delivery_within_threshold")
    return _tell(dict.fromkeys(names, bool(ages)), probes)


def _make_telemetry(path: str, unit: str, present: str, word: str) -> Callable[..., Document]:
    """Return the step that tells of the readings below `path` of each node in service, those with a word in them."""

    def step(_: argparse.Namespace) -> Document:
        api, names, samples, units, nodes, newest = Api(), set[str](), 0, 0, 0, ""
        hosts = [host for host in api.list_hosts() if host["in_service"]]
        for host in hosts:
            answer = api.read(host["node"], path)
            leaves = [leaf for leaf in _list_leaves(answer["readings"]) if word in "/".join(leaf)]
            names |= {leaf[-1] for leaf in leaves}
            units += len({leaf[:-1] for leaf in leaves})
            samples, nodes, newest = (
                samples + len(leaves),
                nodes + bool(leaves),
                max(newest, answer["at"] if leaves else ""),
            )
        recent = [host for host in hosts if host["age_s"] is not None and host["age_s"] <= READ_WITHIN_S]
        tests = {"telemetry_endpoint_reachable": bool(hosts), present: bool(names), "samples_recent": bool(recent)}
        probes = {
            "telemetry_source": f"assay API /nodes/NAME/readings?path={path}",
            "metric_names": sorted(names),
            "sample_count": samples,
            "nodes_checked": nodes,
            unit: units,
            "latest_timestamp": newest,
        }
        return _tell(tests, probes)

    return step


STEPS |= {
    "east_west_network_telemetry": _make_telemetry("probe/hca", "ports_checked", "plane_metrics_present", "counters"),
    "host_nic_network_telemetry": _make_telemetry("probe/nic", "nics_checked", "nic_metrics_present", "counters"),
    "nvswitch_fabric_telemetry": _make_telemetry(GPUS, "planes_checked", "plane_metrics_present", "fabric"),
    "gpu_nvlink_telemetry": _make_telemetry(GPUS, "links_checked", "link_metrics_present", "nvlink/link"),
}


@_step
def bmc_gpu_telemetry(options: argparse.Namespace) -> Document:
    """TELEM04-01: what the BMC reads of the GPUs, also while no system runs on the host."""
    answer = _make_telemetry("bmc/sensor", "sensors_checked", "gpu_metrics_present", "GPU")(options)
    tests = answer["tests"]
    probes = tests["gpu_metrics_present"]["probes"]
    tests["host_os_gap_identified"] = tests["gpu_metrics_present"]
    tests["telemetry_samples_recent"] = tests.pop("samples_recent")
    probes |= {
        "telemetry_endpoint": probes["telemetry_source"],
        "bmc_endpoints_checked": probes["nodes_checked"],
        "host_os_unavailable_metrics": probes["metric_names"],  # the BMC reads them while no system runs on the host
    }
    return answer


@_step
def bmc_sel_logs(_: argparse.Namespace) -> Document:
    """OBS17-01: the logs of the BMCs."""
    hosts = [host for host in Api().list_hosts() if host["bmc_logs"]]
    logs = [log for host in hosts for log in host["bmc_logs"]]
    probes = {
        "bmc_endpoints_checked": len(hosts),
        "log_source": ", ".join(sorted({log["log"] for log in logs})),
        "entry_count": sum(log["critical"] + log["warning"] for log in logs),
    }
    names = ("sel_log_endpoint_reachable", "sel_log_source_present", "sel_entries_queryable")
    return _tell(dict.fromkeys(names, bool(logs)), probes)


@_step
def nvlink_domain(options: argparse.Namespace) -> Document:
    """NET02-02: the NVLink domain of a node: its cluster in a rack of NVLink, else its own baseboard."""
    api = Api()
    host = api.find_host(options.machine_id)
    devices = api.read(options.machine_id, GPUS)["readings"] or {}
    links = [leaf for leaf in _list_leaves(devices) if "nvlink" in leaf]
    clusters = {str(gpu["fabric"]["cluster"].get("value", "")) for gpu in devices.values()}
    shared = sorted(cluster for cluster in clusters if cluster.strip("0-"))
    domain = shared[0] if shared else f"baseboard of {host['machine']}"
    names = ("node_resolved", "nvlink_support_detected", "nvlink_domain_id_present")
    answer = _tell(dict.fromkeys(names, bool(links)), {})
    return {**answer, "node_id": host["machine"], "nvlink_supported": bool(links), "nvlink_domain_id": domain}


def _list_changes(api: Api) -> Iterator[Document]:
    """Yield what a customer may see of the ledger: that its nodes left service, and came back."""
    page: Document = {"position": 0, "more": True}
    while page["more"]:
        page = api.ask(f"/changes?limit=1000&after={page['position']}")
        yield from page["changes"]


def _restart(operation: str, options: argparse.Namespace) -> tuple[str, list[Document], Document, Document]:
    """Order a restart; return when the node was read before, the boot ids before and after, the node, and the order."""
    api, name = Api(), options.machine_id
    begun, boot = api.find_host(name)["read_at"], api.read(name, "probe/host/boot_id")["readings"]
    record = api.follow(api.order(operation, nodes=[name], now=True), options.patience)
    host = _serve(api, options)
    return begun, [boot, api.read(name, "probe/host/boot_id")["readings"]], host, record


def _serve(api: Api, options: argparse.Namespace) -> Document:
    """Wait until the suite's node serves."""
    return _wait(lambda: api.find_host(options.machine_id), lambda host: bool(host["in_service"]), options.patience)


def _wait(ask: Callable[[], Document], is_there: Callable[[Document], bool], patience_s: float) -> Document:
    """Ask again until the answer is as wanted, or so many seconds are over; return the last answer."""
    ends_at = time.monotonic() + patience_s
    while not is_there(answer := ask()) and time.monotonic() < ends_at:
        time.sleep(POLL_S)
    return answer


def _list_leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each value in a branch of readings."""
    if isinstance(tree, dict) and "value" in tree:
        yield path
    elif isinstance(tree, dict):
        for step, branch in tree.items():
            yield from _list_leaves(branch, (*path, step))


def _describe_instance(host: Document) -> Document:
    state = "running" if host["in_service"] else "pending"
    return {"instance_id": host["machine"], "node": host["node"], "state": state, "instance_type": host["spec"]}


def _tell(passed: Mapping[str, bool], probes: Document) -> Document:
    return {"tests": {name: {"passed": is_so, "probes": probes} for name, is_so in passed.items()}}


def _describe(record: Document, **more: Any) -> Document:
    texts = "; ".join(f"{node['node']}: {node['state']} {node['text']}".strip() for node in record["nodes"])
    return {"requested": True, "accepted": True, "operation_id": record["id"], "message": texts, **more}


def _list_events(record: Document) -> list[Document]:
    window = f" from {record['starts_at']} to {record['ends_at']}" if record["starts_at"] else ""
    return [
        {
            "machine_id": node["node"],
            "type": "planned maintenance" if record["starts_at"] else record["operation"],
            "status": node["state"],
            "message": f"{record['operation']}{window}: {record['reason']}",
            "notified_at": record["created_at"],
            "event_id": record["id"],
        }
        for node in record["nodes"]
    ]


def main() -> int:
    """Print the document of one step. The exit code is 1 where the API refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--region", default="")
    parser.add_argument("--machine-id", default="")
    parser.add_argument("--rack-id", default="")
    parser.add_argument("--patience", type=float, default=540.0, help="seconds until an operation must have ended")
    options = parser.parse_args()
    try:
        document = {"success": True, **STEPS[options.step](options)}
    except Refused as refusal:
        document = {"success": False, "error": str(refusal)}
    sys.stdout.write(json.dumps({"platform": "assay", "test_name": options.step, **document}, indent=1) + "\n")
    return 0 if document["success"] else 1


if __name__ == "__main__":
    sys.exit(main())
