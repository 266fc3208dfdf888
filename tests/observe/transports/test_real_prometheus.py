"""The way from a metric to a fault, and from metrics to readings, through the programs that sites run."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.transports.transport import TransportRegistry, run_remote_probe
from assay.observe.transports.transport_protocol import TransportContext
from tests.support.places import ROOT

pytestmark = pytest.mark.slow
PLACE = "0000:1b:00.0"


def look(monitored: Any, stale_s: float = 180) -> dict[str, Any]:
    """Return what the metrics tell of n0003."""
    maps = load_fleet(ROOT).monitorings
    match = {"Hostname": "{name}", "node": "{name}"}
    metrics = {"url": monitored.url, "match": match, "xid_hours": 1, "stale_s": stale_s}
    variables = {"transport": "prometheus", "metrics": metrics}
    node = Node("n0003", "h100-a", "lab1", "r01", 7, "S", "hgx-h100", "managed", settings=make_node_settings(variables))
    return run_remote_probe(node, [], 30, TransportRegistry(TransportContext(monitorings=maps)))["probe"]


def entries(monitored: Any, kind: str) -> list[Any]:
    ledger = Ledger.open(monitored.site.fleet / ".assay/ledger.sqlite")
    try:
        return ledger.entries(kinds=[kind])
    finally:
        ledger.close()


def test_metrics_are_readings_of_the_node(monitored: Any) -> None:
    tree = look(monitored)
    gpu = tree["gpu"]["devices"][PLACE]
    assert (gpu["temperature"]["gpu_c"], gpu["memory"]["used_bytes"]) == ({"value": 41}, {"value": 3 * 2**20})
    assert tree["host"]["kernel"] == {"value": platform.release()}
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert abs(tree["host"]["uptime_s"]["value"] - uptime) < 60
    assert gpu["pcie"]["width"]["absent"].startswith("Prometheus has no sample of DCGM_FI_DEV_PCIE_LINK_WIDTH")


def test_a_metric_that_changes_is_a_fault_in_the_ledger_and_its_end_is_noted(monitored: Any) -> None:
    monitored.gauges["DCGM_FI_DEV_XID_ERRORS"] = 79
    (fault,) = monitored.site.wait_for(lambda: monitored.site.faults("gpu.xid.79"), "the alert is a fault")
    assert (fault.node, fault.body["subject"], fault.body["count"]) == ("n0003", "h100-a/n0003/gpu0", 1)
    assert fault.body["detail"] == "alert GpuXid: XID 79 on n0003"
    tree = monitored.site.wait_for(lambda: _with_lines(look(monitored)), "the gauge's change is seen on the grid")
    (line,) = tree["metric_events"]["lines"]["value"]
    assert line["text"].startswith("NVRM: Xid (PCI:0000:1b:00): 79")
    (same,) = look(monitored)["metric_events"]["lines"]["value"]
    assert same["seq"] == line["seq"], "the gauge stays at 79: it is the same sighting at each look"
    assert tree["gpu"]["devices"][PLACE]["xid"]["code"] == {"value": 79}
    monitored.gauges["DCGM_FI_DEV_XID_ERRORS"] = 0
    monitored.site.wait_for(lambda: entries(monitored, "alert.resolved"), "that it is over is noted")
    assert entries(monitored, "fault.cleared") == [], "an XID is not cured by silence"


def test_a_metric_that_is_not_told_any_more_reads_failed(monitored: Any) -> None:
    def used() -> dict[str, Any]:
        return look(monitored, stale_s=10)["gpu"]["devices"][PLACE]["memory"]["used_bytes"]

    gone = monitored.gauges.pop("DCGM_FI_DEV_FB_USED")
    try:
        said = monitored.site.wait_for(lambda: used().get("failed"), "its last sample is too old")
    finally:
        monitored.gauges["DCGM_FI_DEV_FB_USED"] = gone
    assert said == "the last sample of DCGM_FI_DEV_FB_USED is older than 10 s"


def test_an_alert_that_nobody_mapped_is_noted(monitored: Any) -> None:
    monitored.gauges["DCGM_FI_DEV_GPU_TEMP"] = 201
    (kept,) = monitored.site.wait_for(lambda: entries(monitored, "alert.elsewhere"), "it is counted")
    assert (kept.node, kept.body["alert"]) == ("", "StrangeLight")
    assert "no rule says what it is; it touches no node" in monitored.site.log("serve")
    assert monitored.site.faults("alert.strange-light") == []
    monitored.gauges["DCGM_FI_DEV_GPU_TEMP"] = 41


def test_prometheus_reads_the_metrics_of_assay_itself(monitored: Any) -> None:
    monitored.site.wait_for(lambda: monitored.query('up{job="assay"} == 1'), "assay is scraped")
    assert monitored.query("sum(assay_nodes)") == [len(load_fleet(monitored.site.fleet).nodes)]
    assert monitored.query("assay_ledger_up") == [1]
    assert monitored.query("count by (version) (assay_build_info)") == [1]
    monitored.gauges["DCGM_FI_DEV_XID_ERRORS"] = 48
    found = 'sum(assay_faults_total{fault="gpu.xid.48"}) >= 1'
    monitored.site.wait_for(lambda: monitored.query(found), "a fault is counted a scrape later")
    monitored.gauges["DCGM_FI_DEV_XID_ERRORS"] = 0


def _with_lines(tree: dict[str, Any]) -> dict[str, Any] | None:
    return tree if tree.get("metric_events", {}).get("lines", {}).get("value") else None
