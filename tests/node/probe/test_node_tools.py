"""What the node's own tools print, as their authors write it: SMART logs, clocks, units."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.reading import parse_reading
from assay.node.probe.devices.nvme import parse_nvme_cli, parse_smartctl, read_smart
from assay.node.probe.host import (
    NO_TIME_DAEMON,
    _sync,
    parse_chrony,
    parse_ntpq,
    parse_pmc,
    parse_timesyncd,
    parse_units,
)

NVME_CLI = {
    "critical_warning": 4,
    "temperature": 311,
    "avail_spare": 100,
    "spare_thresh": 10,
    "percent_used": 2,
    "data_units_read": "123456789012345678901",
    "power_on_hours": 8462,
    "unsafe_shutdowns": 3,
    "media_errors": 0,
}
SMARTCTL = {
    "nvme_smart_health_information_log": {
        "critical_warning": 0,
        "temperature": 38,
        "available_spare": 100,
        "available_spare_threshold": 10,
        "percentage_used": 2,
        "media_errors": 7,
        "unsafe_shutdowns": 3,
        "power_on_hours": 8462,
    }
}
TRACKING = "0A00000B,10.0.0.11,3,1767600000.1,-0.000013,0.000001,0.000012,-1.2,0.0,0.05,0.0002,0.0003,64.4,Normal\n"
RV = 'version="ntpd 4.2.8p15", leap=00, stratum=3,\nrefid=10.0.0.11, offset=-1.250, sys_jitter=0.01\n'
TIMESYNC = """       Server: 10.0.0.11 (ntp.example)
Poll interval: 34min 8s (min: 32s; max 34min 8s)
         Leap: normal
      Version: 4
      Stratum: 2
       Offset: +1.250ms
"""
UNITS = """chrony.service              loaded    active   running chrony, an NTP client/server
nvidia-fabricmanager.service loaded    failed   failed  NVIDIA fabric manager service
auditd.service              not-found inactive dead    auditd.service
data.mount                  loaded    failed   failed  /data
-.mount                     loaded    active   mounted Root Mount
"""


def test_a_drives_log_is_read_from_either_tool() -> None:
    log = parse_nvme_cli(json.dumps(NVME_CLI))
    assert (log["temperature_c"], log["critical_warning"]) == ({"value": 38}, {"value": 4})
    assert (log["spare_percent"], log["used_percent"]) == ({"value": 100}, {"value": 2})
    assert parse_smartctl(json.dumps(SMARTCTL))["media_errors"] == {"value": 7}
    assert set(log) == set(parse_smartctl(json.dumps(SMARTCTL)))


def test_a_warning_with_its_bits_and_large_counts_as_text_are_read() -> None:
    log = parse_nvme_cli(
        json.dumps(NVME_CLI | {"critical_warning": {"value": 1, "available_spare": 1}, "media_errors": "12"})
    )
    assert (log["critical_warning"], log["media_errors"]) == ({"value": 1}, {"value": 12})


def test_a_log_that_was_refused_failed_and_a_field_that_is_not_there_is_no_zero() -> None:
    assert parse_nvme_cli("open: Permission denied\n") == {
        "failed": "nvme gave no log; it said 'open: Permission denied'"
    }
    assert (
        "absent"
        in parse_nvme_cli(json.dumps({name: said for name, said in NVME_CLI.items() if name != "media_errors"}))[
            "media_errors"
        ]
    )
    assert "failed" in parse_nvme_cli(json.dumps(NVME_CLI | {"media_errors": "many"}))["media_errors"]


def test_without_a_tool_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_smart("nvme0") == {
        "unsupported": "neither nvme nor smartctl is installed; install nvme-cli or smartmontools"
    }


def test_smartctl_is_asked_where_nvme_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "smartctl", json.dumps(SMARTCTL))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_smart("nvme0")["media_errors"] == {"value": 7}


def test_chrony_tells_of_the_clock() -> None:
    assert parse_chrony(TRACKING) == {
        "daemon": {"value": "chrony"},
        "synchronised": {"value": True},
        "offset_s": {"value": 0.000013},
        "source": {"value": "10.0.0.11"},
        "stratum": {"value": 3},
    }
    assert parse_chrony(TRACKING.replace("Normal", "Not synchronised"))["synchronised"] == {"value": False}
    assert parse_chrony("506 Cannot talk to daemon\n") == {"failed": "chronyc: 506 Cannot talk to daemon"}


def test_ntpd_and_timesyncd_tell_of_the_clock() -> None:
    assert (parse_ntpq(RV)["synchronised"], parse_ntpq(RV)["offset_s"]) == ({"value": True}, {"value": -0.00125})
    assert parse_ntpq(RV.replace("leap=00", "leap=11"))["synchronised"] == {"value": False}
    assert (parse_timesyncd(TIMESYNC)["synchronised"], parse_timesyncd(TIMESYNC)["offset_s"]) == (
        {"value": True},
        {"value": 0.00125},
    )
    waiting = parse_timesyncd("       Server: 10.0.0.11 (ntp.example)\nPoll interval: 0\n")
    assert waiting["synchronised"] == {"value": False}
    assert "absent" in waiting["offset_s"]


def test_the_first_daemon_that_answers_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _sync() == {"absent": NO_TIME_DAEMON}
    tool(tmp_path, "chronyc", "506 Cannot talk to daemon")
    assert _sync() == {"failed": "chronyc: 506 Cannot talk to daemon"}
    tool(tmp_path, "ntpq", RV)
    assert _sync()["daemon"] == {"value": "ntpd"}


def test_ptp_is_told_in_seconds_or_not_at_all() -> None:
    assert parse_pmc("\t\tstepsRemoved 1\n\t\toffsetFromMaster     -42.0\n") == {"offset_s": {"value": -4.2e-08}}
    assert "absent" in parse_pmc("sending: GET CURRENT_DATA_SET\n")


def test_units_have_their_state_and_those_that_failed_are_named() -> None:
    found = parse_units(UNITS)
    assert found["units"] == {"chrony": {"value": "active"}, "nvidia-fabricmanager": {"value": "failed"}}
    assert found["failed_units"] == {"value": ["data.mount", "nvidia-fabricmanager.service"]}


def test_a_machine_without_systemd_has_no_services_that_are_well() -> None:
    said = "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
    assert list(parse_units(said)) == ["failed"]


READERS = [parse_nvme_cli, parse_smartctl, parse_chrony, parse_ntpq, parse_timesyncd, parse_pmc, parse_units]


@pytest.mark.parametrize("read", READERS)
@given(text=st.text())
def test_no_output_whatever_raises(read: Callable[[str], Any], text: str) -> None:
    assert list(read(text)) in (["failed"], ["absent"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(NVME_CLI)), JSON))
def test_no_log_whatever_raises(log: dict[str, Any]) -> None:
    for found in (
        parse_nvme_cli(json.dumps(log)),
        parse_smartctl(json.dumps({"nvme_smart_health_information_log": log})),
    ):
        assert parse_reading(found) or all(parse_reading(leaf) for leaf in found.values())


def tool(folder: Path, name: str, says: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
