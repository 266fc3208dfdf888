"""Switches that run SONiC tell of their ports by dumps of its databases; what they do not tell is unknown, never 0."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from assay.fabric.health.counters import DOWNED, ETHERNET_COUNTERS, MARKED, PAUSES_IN, RECEIVED
from assay.fabric.health.stored_scan import make_earlier_channel, read_scan
from assay.fabric.health.switch_facts import parse_sonic
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value
from assay.model.specs.fabric.cable import PortId

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
GUID = "0x0000b8cef6005000"
# What a switch of 400 Gb/s ports printed of Ethernet0 (COUNTERS_DB); its chip counts no ECN marks.
COUNTED = {
    "SAI_PORT_STAT_IF_IN_DISCARDS": "2",
    "SAI_PORT_STAT_IF_IN_ERRORS": "0",
    "SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES": "0",
    "SAI_PORT_STAT_IF_OUT_DISCARDS": "0",
    **{f"SAI_PORT_STAT_IF_IN_FEC_CODEWORD_ERRORS_S{symbols}": "0" for symbols in range(3, 16)},
    "SAI_PORT_STAT_IF_IN_FEC_CODEWORD_ERRORS_S0": "51285065114051",
    "SAI_PORT_STAT_IF_IN_FEC_CODEWORD_ERRORS_S1": "433509717",
    "SAI_PORT_STAT_IF_IN_FEC_CODEWORD_ERRORS_S2": "3632",
    **{f"SAI_PORT_STAT_PFC_{priority}_{way}_PKTS": "1" for priority in range(8) for way in ("RX", "TX")},
}


def dump(**rows):
    return json.dumps(
        {key: {"expireat": 1.7e9, "ttl": -0.001, "type": "hash", "value": row} for key, row in rows.items()}
    )


def switch(ports=("Ethernet0", "Ethernet8"), aliases=("etp1", "etp2"), counted=COUNTED, **rows):
    tables = {
        "DEVICE_METADATA|localhost": {"hostname": "leaf-1", "mac": "b8:ce:f6:00:50:00"},
        "COUNTERS_PORT_NAME_MAP": {name: f"oid:0x10000000000{at:02}" for at, name in enumerate(ports)},
        **{f"PORT|{name}": {"alias": alias} for name, alias in zip(ports, aliases, strict=True)},
        **{f"COUNTERS:oid:0x10000000000{at:02}": counted for at, _ in enumerate(ports)},
    }
    return dump(**tables, **rows)


def read(text, split=0):
    ports, switches, problems = parse_sonic(text, split)
    assert not problems
    return {facts.port: facts for facts in ports}, switches


def test_a_port_s_counters_have_one_name_and_what_a_chip_does_not_count_is_missing():
    ports, _ = read(switch())
    seen = ports[PortId(GUID, 1)]
    assert (seen.counters[RECEIVED], seen.counters["InDiscards"], seen.counters[PAUSES_IN]) == (0, 2, 8)
    assert MARKED not in seen.counters
    assert DOWNED not in seen.counters
    assert seen.fec_bins[:4] == (51285065114051, 433509717, 3632, 0)


def test_lost_links_come_from_the_kernel_and_the_build_from_its_file():
    files = "/sys/class/net/Ethernet8/carrier_down_count:5\n/sys/class/net/eth0/carrier_down_count:1\n"
    ports, (box,) = read(switch() + f"\n{files}build_version: '202411.0-a1b2'\n")
    assert {at.number: facts.counters.get(DOWNED) for at, facts in ports.items()} == {1: None, 2: 5}
    assert box.firmware == "202411.0-a1b2"


def test_modules_power_and_air_are_read_in_the_words_of_old_and_new_daemons():
    ports, (box,) = read(
        switch()
        + dump(
            **{
                "TRANSCEIVER_INFO|Ethernet0": {"manufacturename": "NVIDIA", "modelname": "MMS4X00", "serialnum": "MT1"},
                "TRANSCEIVER_DOM_SENSOR|Ethernet0": {"temperature": "41.5", "rx1power": "-inf", "rx2power": "1.2"},
                "TRANSCEIVER_DOM_SENSOR|Ethernet8": {"temperature": "N/A", "rx1power": "N/A"},
                "PSU_INFO|PSU 1": {"presence": "True", "status": "True"},
                "PSU_INFO|PSU 2": {"presence": "true", "status": "false"},
                "PSU_INFO|PSU 3": {"presence": "false", "status": "true"},
                "FAN_INFO|fan1": {"presence": "true", "status": "true", "speed": "60"},
                "FAN_INFO|fan2": {"presence": "true", "status": "false", "speed": "60"},
                "FAN_INFO|fan3": {"presence": "true", "status": "true", "speed": "N/A"},
                "TEMPERATURE_INFO|ASIC": {"temperature": "63.0"},
                "TEMPERATURE_INFO|PSU-1 Temp": {"temperature": "99.0"},
            }
        )
    )
    module = ports[PortId(GUID, 1)].module
    assert (module["vendor"], module["serial"], module["rx_power_dbm"]) == ("NVIDIA", "MT1", (float("-inf"), 1.2))
    assert not ports[PortId(GUID, 2)].module
    assert box.failed_psus == ("PSU 2: failed", "PSU 3: not present")
    assert (box.stopped_fans, dict(box.fans), box.temperature_c) == (("fan2",), {"fan1": 60.0, "fan2": 0.0}, 63.0)


@pytest.mark.parametrize(("split", "numbers"), [(0, {1, 3, 4}), (2, {1, 3, 4}), (1, {1, 2})])
def test_ports_are_numbered_as_the_design_splits_cages(split, numbers):
    ports, _ = read(switch(("Ethernet0", "Ethernet8", "Ethernet12"), ("etp1", "etp2a", "etp2b")), split)
    assert {port.number for port in ports} == numbers


def test_hosts_are_told_by_clush_and_one_without_its_mac_is_a_problem():
    lines = switch().replace('"}}, "', '"}},\n"')
    ports, switches, problems = parse_sonic("\n".join(f"leaf-1: {line}" for line in lines.splitlines()))
    assert (len(ports), len(switches), problems) == (2, 1, [])
    assert parse_sonic(json.dumps({"leaf-2": [dump(**{"PSU_INFO|PSU 1": {}})]}))[2] == [
        "leaf-2: cannot be read: it does not tell its MAC: dump CONFIG_DB too"
    ]
    assert parse_sonic('leaf-3: {"COUNTERS_PORT_NAME_MAP": {"va')[2]


def scan(at, counted, before=None):
    ports = {"databases": {"text": value(switch(counted=counted)), "stderr": value("")}}
    channels = {"ports": ports, "earlier": make_earlier_channel(before)}
    return EvidenceDocument("fabric-small", NOON + timedelta(hours=at), channels)


def test_what_only_one_of_two_scans_tells_has_no_growth():
    first = scan(0, {name: count for name, count in COUNTED.items() if "FEC_NOT" not in name})
    second = read_scan(scan(4, {**COUNTED, "SAI_PORT_STAT_IF_IN_ERRORS": "40"}, first))
    growth = second.find_port_growth(PortId(GUID, 1))
    assert growth.per_hour(RECEIVED) == 10
    assert growth.counters[PAUSES_IN].count == 0
    assert "FecUncorrected" not in growth.counters
    assert not set(ETHERNET_COUNTERS) & second.find_port_growth(PortId(GUID, 9)).counters.keys()
