"""Metrics as readings: what is told, what is not, and a gauge of the last XID that is no fault each time."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from assay.adapters.prometheus.client import MetricSeries, parse_query_response
from assay.adapters.prometheus.readings import (
    QueryWindow,
    ScrapeContext,
    build_probe_readings,
    build_xid_lines,
    build_xid_readings,
    find_xid_changes,
    list_metrics,
    normalize_part_name,
)
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.specs.monitoring import Monitoring, PrometheusSettings
from tests.support.places import ROOT

NOW = 1_795_000_000.0
GPU = {"pci_bus_id": "00000000:1B:00.0", "gpu": "0", "UUID": "GPU-1", "modelName": "NVIDIA H100 80GB HBM3"}
PLACE = "0000:1b:00.0"
BY = "pci_bus_id"


@pytest.fixture(scope="module")
def exporters() -> Monitoring:
    return load_fleet(ROOT).monitorings["exporters"]


def series(name: str, number: float, age: float = 5, **labels: str) -> MetricSeries:
    return MetricSeries({"__name__": name, **labels}, [(NOW - age - 15, number), (NOW - age, number)])


def test_a_metric_becomes_the_reading_that_the_probe_would_have(exporters: Monitoring) -> None:
    found = [
        series("DCGM_FI_DEV_GPU_TEMP", 61, **GPU),
        series("DCGM_FI_DEV_FB_USED", 2, **GPU),
        series("DCGM_FI_DEV_ROW_REMAP_FAILURE", 1, **GPU),
        series("node_boot_time_seconds", NOW - 3600),
        series("node_uname_info", 1, release="6.8.0-64-generic"),
        series("node_infiniband_state_id", 4, device="mlx5_0", port="1"),
        series("node_infiniband_state_id", 1, device="mlx5_0", port="2"),
        series("node_infiniband_rate_bytes_per_second", 5e10, device="mlx5_0", port="1"),
        series("node_network_carrier", 1, device="ens3"),
        series("node_network_carrier", 1, device="lo"),
    ]
    tree = build_probe_readings(exporters, found, ScrapeContext(NOW, 180))
    gpu = tree["gpu"]["devices"][PLACE]
    assert (gpu["temperature"]["gpu_c"], gpu["memory"]["used_bytes"]) == ({"value": 61}, {"value": 2 * 2**20})
    assert (gpu["remap"]["failed"], gpu["name"]) == ({"value": True}, {"value": "NVIDIA H100 80GB HBM3"})
    assert (tree["host"]["uptime_s"], tree["host"]["kernel"]) == ({"value": 3600}, {"value": "6.8.0-64-generic"})
    assert (tree["hca"]["mlx5_0"]["state"], tree["hca"]["mlx5_0"]["rate_gbps"]) == ({"value": "ACTIVE"}, {"value": 400})
    assert list(tree["nic"]) == ["ens3"]


def test_what_no_metric_tells_is_not_a_value(exporters: Monitoring) -> None:
    tree = build_probe_readings(exporters, [series("DCGM_FI_DEV_GPU_TEMP", 61, **GPU)], ScrapeContext(NOW, 180))
    gpu = tree["gpu"]["devices"][PLACE]
    assert gpu["pcie"]["replays"] == {"absent": "Prometheus has no sample of DCGM_FI_DEV_PCIE_REPLAY_COUNTER here"}
    assert set(tree["nvme"]) == set(tree["kernel_log"]) == {"unsupported"}
    assert tree["hca"] == {"absent": "Prometheus has no sample of any device here"}


def test_a_stale_sample_reads_failed(exporters: Monitoring) -> None:
    found = [series("DCGM_FI_DEV_GPU_TEMP", 61, age=200, **GPU)]
    gpu = build_probe_readings(exporters, found, ScrapeContext(NOW, 180))["gpu"]["devices"][PLACE]
    assert gpu["temperature"]["gpu_c"] == {"failed": "the last sample of DCGM_FI_DEV_GPU_TEMP is older than 180 s"}
    assert "failed" in gpu["name"]


def test_what_is_missing_while_prometheus_warns_reads_failed(exporters: Monitoring) -> None:
    tree = build_probe_readings(
        exporters, [series("DCGM_FI_DEV_GPU_TEMP", 61, **GPU)], ScrapeContext(NOW, 180, "store-2 is down")
    )
    assert tree["host"]["uptime_s"] == {"failed": "node_boot_time_seconds: store-2 is down"}


def test_strange_numbers_are_never_values(exporters: Monitoring) -> None:
    found = [
        series("DCGM_FI_DEV_GPU_TEMP", float("nan"), **GPU),
        series("node_infiniband_state_id", 9, device="mlx5_0", port="1"),
        series("node_network_speed_bytes", -125000, device="ens3"),
    ]
    tree = build_probe_readings(exporters, found, ScrapeContext(NOW, 180))
    assert "unsupported" in tree["gpu"]["devices"][PLACE]["temperature"]["gpu_c"]
    assert "failed" in tree["hca"]["mlx5_0"]["state"]
    assert "unsupported" in tree["nic"]["ens3"]["speed_mbps"]


def test_places_are_spelt_as_linux_does() -> None:
    assert normalize_part_name("00000000:1B:00.0", "pci") == PLACE
    assert normalize_part_name("00010000:01:00.0", "pci") == "10000:01:00.0"
    assert normalize_part_name("nonsense", "pci") == ""
    assert (normalize_part_name("3", "index"), normalize_part_name("GPU-1", "index")) == ("gpu3", "GPU-1")


def gauge(*samples: tuple[float, float], **labels: str) -> MetricSeries:
    return MetricSeries({"__name__": "DCGM_FI_DEV_XID_ERRORS", **GPU, **labels}, samples)


def test_a_gauge_that_stays_at_79_is_one_sighting_however_often_it_is_looked_at() -> None:
    begin = NOW // 15 * 15
    whole = [(begin + 15 * step, 0.0 if step < 40 else 79.0) for step in range(4000)]
    told = set()
    for look in range(50, 4000, 100):
        window = QueryWindow.ending_at(whole[look][0] + 7, 1)
        within = gauge(*[(at, code) for at, code in whole if window.start <= at <= window.end])
        before = gauge(*[(at, code) for at, code in whole if at < window.start][-1:] or [(begin, 0.0)])
        told |= {
            (line["seq"], line["text"]) for line in build_xid_lines(find_xid_changes([within], [before], BY), None)
        }
    assert told == {(int(whole[40][0]), "NVRM: Xid (PCI:0000:1b:00): 79, from a gauge of the last XID")}


def test_a_gap_in_the_scraping_is_no_new_xid() -> None:
    before = gauge((NOW - 9000, 79.0))
    assert find_xid_changes([gauge((NOW - 600, 79.0), (NOW, 79.0))], [before], BY) == []


def test_another_code_is_another_sighting_and_one_in_a_new_series_too() -> None:
    older, newer = gauge((NOW - 60, 31.0), err_code="31"), gauge((NOW - 30, 79.0), (NOW, 79.0), err_code="79")
    found = find_xid_changes([newer, older], [gauge((NOW - 9000, 0.0))], BY)
    assert [(change.code, change.at) for change in found] == [(31, NOW - 60), (79, NOW - 30)]


def test_a_gauge_that_is_79_when_it_is_first_seen_is_told_once() -> None:
    assert [one.code for one in find_xid_changes([gauge((NOW - 30, 79.0), (NOW, 79.0))], [], BY)] == [79]


def test_that_a_repeat_cannot_be_seen_is_said() -> None:
    told = build_xid_readings([gauge((NOW, 79.0))], [], BY)[PLACE]
    assert told["code"] == {"value": 79}
    assert told["repeats"] == {"unsupported": "the gauge holds the last code: the same XID again cannot be seen in it"}
    assert told["since"] == {"absent": "it changed before the window that was looked at"}


@pytest.mark.parametrize("hours", [0.1, 24, 168])
def test_the_window_stays_on_its_grid_and_within_what_prometheus_allows(hours: float) -> None:
    one, other = QueryWindow.ending_at(NOW, hours), QueryWindow.ending_at(NOW + 100, hours)
    assert (other.start - one.start) % one.step_s == 0
    assert (one.end - one.start) / one.step_s <= 10_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<html>", "no JSON"),
        (b'{"status":"error","error":"parse error"}', "parse error"),
        (b'{"status":"success","data":{"result":[{"metric":{}}]}}', "not Prometheus's"),
        (b'{"status":"success","data":{"result":[{"metric":{},"value":["x","1"]}]}}', "not Prometheus's"),
        (b"[]", "nothing that Prometheus says"),
    ],
)
def test_what_is_no_answer_is_told(content: bytes, said: str) -> None:
    with pytest.raises(AssayError, match=said):
        parse_query_response(content)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda some: (
            st.lists(some)
            | st.dictionaries(
                st.sampled_from(["status", "data", "result", "metric", "value", "values", "warnings"]), some
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_a_service_answers_it_is_trouble_or_series(document: object) -> None:
    with contextlib.suppress(AssayError):
        parse_query_response(json.dumps(document).encode())


def test_every_metric_is_asked_for_once(exporters: Monitoring) -> None:
    names = list_metrics(exporters)
    assert len(names) == len(set(names))
    assert "DCGM_FI_DEV_XID_ERRORS" in names


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"match": {"cluster": "hall1"}}, "no label of `match` names the node"),
        ({"token": {"env": "T"}, "credentials": {"env": "C"}}, "give credentials or token"),
        ({"token": {"env": "T"}, "url": "http://prometheus.site"}, "do not travel in the clear"),
        ({"url": "https://user:secret@prometheus.site"}, "url"),
    ],
)
def test_metrics_that_cannot_be_meant_are_refused(said: dict[str, object], why: str) -> None:
    plain = {"url": "https://prometheus.site", "match": {"Hostname": "{name}"}}
    assert PrometheusSettings.model_validate(plain)
    with pytest.raises(ValidationError, match=why):
        PrometheusSettings.model_validate({**plain, **said})
