"""The probe reads adapters on Ethernet by dcb or mlnx_qos and ethtool, and takes no refusal for a setting."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from assay.node.probe.devices.network_adapters import (
    QOS_S,
    parse_dcb_app,
    parse_dcb_pfc,
    parse_mlnx_qos,
    parse_statistics,
    read_hcas,
    read_qos,
)
from assay.node.probe.node_access import NodeRoot, resolve_lazy, run_tool

PFC = '{"pfc_cap":8,"macsec_bypass":false,"delay":0,"prio_pfc":[false,false,false,true,false,false,false,false]}'
APP = '{"dscp_prio":[[26,3],[48,6]]}'
MLNX_QOS = """\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
        prio:0 dscp:07,06,05,04,03,02,01,00,
        prio:3 dscp:26,
default priority:
Cable len: 10
PFC configuration:
        priority    0   1   2   3   4   5   6   7
        enabled     0   0   0   1   0   0   0   0

tc: 0 ratelimit: unlimited, tsa: vendor
         priority:  1
"""
MLX5 = """\
NIC statistics:
     rx_discards_phy: 7
     rx_prio3_buf_discard: 5
     rx_prio3_pause: 41927
     rx_prio6_pause: 3
     tx_prio3_pause: 1290418
     rx_crc_errors_phy: 2
     link_down_events_phy: 4
     rx_corrected_bits_phy: 88
     rx_pcs_symbol_err_phy: 1
"""
BNXT = """\
NIC statistics:
     [0]: rx_ucast_packets: 12
     rx_fcs_err_frames: 9
     rx_pfc_ena_frames_pri3: 11
     link_down_events: 1
     rx_discard_packets_cos4: 6
"""


def put(folder: Path, tool: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / tool
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_settings_are_read_by_dcb(tmp_path, monkeypatch):
    put(tmp_path, "dcb", f"case \"$*\" in *pfc*) echo '{PFC}' ;; *) echo '{APP}' ;; esac")
    monkeypatch.setenv("PATH", str(tmp_path))
    read = read_qos("ens1np0")
    assert read == {"pfc": {"value": [3]}, "dscp": {"value": ["26:3", "48:6"]}, "trust": {"value": "dscp"}}


def test_without_a_priority_for_a_dscp_the_driver_trusts_the_vlan():
    assert parse_dcb_app("{}") == parse_dcb_app("\n") == {"value": []}


def test_mlnx_qos_stands_in_for_dcb(tmp_path, monkeypatch):
    put(tmp_path, "mlnx_qos", f"printf '%s' '{MLNX_QOS}'")
    monkeypatch.setenv("PATH", str(tmp_path))
    read = read_qos("ens1np0")
    assert (read["pfc"], read["trust"]) == ({"value": [3]}, {"value": "dscp"})
    assert read["dscp"]["value"][:2] == ["7:0", "6:0"]
    assert "26:3" in read["dscp"]["value"]


def test_a_node_without_either_tool_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "neither dcb nor mlnx_qos" in read_qos("ens1np0")["unsupported"]


@pytest.mark.parametrize("parse", [parse_dcb_pfc, parse_mlnx_qos, parse_statistics, parse_dcb_app])
@pytest.mark.parametrize(
    ("text", "leaf"),
    [("Attribute read: Operation not supported\n", "unsupported"), ("Attribute read: No such device\n", "failed")],
)
def test_a_refusal_is_no_setting(parse, text, leaf):
    assert leaf in parse(text)


@pytest.mark.slow(minutes=1)
def test_dcb_and_ethtool_themselves_take_the_question_and_refuse_an_interface_without_such_settings():
    if not (shutil.which("dcb") and shutil.which("ethtool")):
        pytest.skip("dcb or ethtool is not installed: apt-get install iproute2 ethtool")
    settings, elsewhere = read_qos("lo"), read_qos("nowhere0")
    assert "dcb: Attribute read: Operation not supported" in settings["pfc"]["unsupported"]
    assert "dcb: Attribute read: No such device" in elsewhere["pfc"]["failed"]
    counters = run_tool(["ethtool", "-S", "lo"], QOS_S, parse_statistics)
    assert counters == {"unsupported": "ethtool: no stats available"}


def test_counters_have_one_name_whatever_the_driver_calls_them():
    mlx5, bnxt = parse_statistics(MLX5), parse_statistics(BNXT)
    assert {name: leaf["value"] for name, leaf in mlx5.items() if "value" in leaf} == {
        "link_downs": 4,
        "crc_errors": 2,
        "fec_corrected_bits": 88,
        "fec_uncorrected_symbols": 1,
        "discards_in": 12,
        "pauses_in": 41930,
        "pauses_out": 1290418,
    }
    assert "no discards_out of this driver" in mlx5["discards_out"]["unsupported"]
    assert [bnxt[name]["value"] for name in ("crc_errors", "pauses_in", "link_downs", "discards_in")] == [9, 11, 1, 6]


@pytest.mark.parametrize("layer", ["InfiniBand", "Ethernet"])
def test_only_a_port_on_ethernet_is_asked(tmp_path, monkeypatch, layer):
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    (port / "gid_attrs/ndevs").mkdir(parents=True)
    (port / "link_layer").write_text(f"{layer}\n")
    (port / "gid_attrs/ndevs/0").write_text("ens1np0\n")
    monkeypatch.setenv("PATH", "/nowhere")
    read = resolve_lazy(read_hcas(NodeRoot(str(tmp_path))))["mlx5_0"]["roce"]
    if layer == "InfiniBand":
        assert read == {"absent": "/sys/class/infiniband/mlx5_0/ports/1/link_layer: InfiniBand"}
    else:
        assert read["interface"] == {"value": "ens1np0"}
        assert read["counters"] == {"absent": "ethtool is not installed"}
