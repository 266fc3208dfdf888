"""What `nvidia-smi -q -x` prints becomes the same branch as NVML's answers, and nothing that it prints does harm."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.reading import parse_reading
from assay.node.probe.gpu.nvidia_smi import parse_nvidia_smi, read_nvidia_smi
from tests.support.places import ROOT

RECORDED = ROOT / "tests/data/nvidia-smi-q-x.xml"  # by the lab's nvidia-smi
SAMPLES = Path(os.environ.get("ASSAY_SAMPLES", "/nonexistent")) / "gpu"
HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
ADDRESS = "0000:1b:00.0"


def log(*inside: str) -> str:
    gpu = f'<gpu id="00000000:1B:00.0"><product_name>NVIDIA H100</product_name>{"".join(inside)}</gpu>'
    return f"{HEAD}<nvidia_smi_log><driver_version>570.172.08</driver_version>{gpu}</nvidia_smi_log>"


def device(*inside: str) -> dict[str, Any]:
    return parse_nvidia_smi(log(*inside))["devices"][ADDRESS]


def leaves(tree: Any) -> Iterator[dict[str, Any]]:
    if parse_reading(tree):
        yield tree
    else:
        assert isinstance(tree, dict), tree
        for branch in tree.values():
            yield from leaves(branch)


@pytest.mark.parametrize(
    ("text", "leaf"),
    [
        ("28 C", {"value": 28}),
        ("N/A", {"unsupported": "nvidia-smi says N/A"}),
        ("[N/A]", {"unsupported": "nvidia-smi says N/A"}),
        (
            "Requested functionality has been deprecated",
            {"unsupported": "nvidia-smi says Requested functionality has been deprecated"},
        ),
        ("ERR!", {"failed": "ERR!"}),
        ("Unknown Error", {"failed": "Unknown Error"}),
        ("[GPU requires reset]", {"failed": "GPU requires reset"}),
        ("", {"failed": "nvidia-smi leaves temperature/gpu_temp empty"}),
        ("warm", {"failed": "temperature/gpu_temp: cannot make sense of 'warm'"}),
    ],
)
def test_every_word_of_nvidia_smi_has_one_meaning(text, leaf):
    assert device(f"<temperature><gpu_temp>{text}</gpu_temp></temperature>")["temperature"]["gpu_c"] == leaf


def test_what_an_older_version_does_not_print_is_unsupported():
    assert device()["fabric"]["state"] == {"unsupported": "nvidia-smi prints no fabric/state"}
    assert device()["nvlink"] == {"unsupported": "nvidia-smi prints no nvlink"}


def test_units_are_the_branchs_own():
    gpu = device(
        "<fb_memory_usage><total>81559 MiB</total></fb_memory_usage>",
        "<pci><pci_gpu_link_info><link_widths><current_link_width>16x</current_link_width></link_widths>",
        "</pci_gpu_link_info></pci>",
        "<gpu_power_readings><average_power_draw>68.57 W</average_power_draw></gpu_power_readings>",
        "<gpu_recovery_action>Drain and Reset</gpu_recovery_action>",
        "<compute_mode>Exclusive_Process</compute_mode>",
    )
    assert gpu["memory"]["total_bytes"] == {"value": 81559 * 2**20}
    assert gpu["pcie"]["width"] == {"value": 16}
    assert gpu["power"]["draw_w"] == {"value": 68.57}
    assert (gpu["recovery_action"], gpu["compute_mode"]) == (
        {"value": "drain_and_reset"},
        {"value": "exclusive_process"},
    )


def test_errors_are_summed_over_their_places_and_one_that_cannot_be_told_is_not_nothing():
    parity, secded = "sram_uncorrectable_parity", "sram_uncorrectable_secded"
    told = f"<{parity}>1</{parity}><{secded}>2</{secded}>"
    volatile = f"<ecc_errors><volatile>{told}<dram_uncorrectable>4</dram_uncorrectable></volatile></ecc_errors>"
    assert device(volatile)["ecc"]["volatile"]["sram_uncorrected"] == {"value": 3}
    assert device(volatile)["ecc"]["volatile"]["uncorrected"] == {"value": 7}
    assert device(volatile.replace(">4<", ">ERR!<"))["ecc"]["volatile"]["uncorrected"] == {"failed": "ERR!"}


def test_throttle_reasons_are_read_by_their_newer_and_older_names():
    reasons = "<X><Y_hw_thermal_slowdown>Active</Y_hw_thermal_slowdown><Y_gpu_idle>Not Active</Y_gpu_idle></X>"
    for group, prefix in (
        ("clocks_event_reasons", "clocks_event_reason"),
        ("clocks_throttle_reasons", "clocks_throttle_reason"),
    ):
        assert device(reasons.replace("X", group).replace("Y", prefix))["throttle"] == {
            "value": ["hw_thermal_slowdown"]
        }


def test_processes_are_counted_and_one_without_a_number_is_no_count():
    one = "<process_info><pid>4242</pid></process_info>"
    assert device(f"<processes>{one}{one.replace('42', '7')}</processes>")["processes"] == {
        "count": {"value": 2},
        "pids": {"value": [77, 4242]},
    }
    assert device("<processes><process_info><pid>N/A</pid></process_info></processes>")["processes"] == {
        "unsupported": "nvidia-smi says N/A"
    }


def test_a_gpu_of_which_nothing_can_be_read_is_one_leaf_and_hides_no_other():
    lost = '<gpu id="00000000:61:00.0"><product_name>GPU is lost</product_name><serial>GPU is lost</serial></gpu>'
    devices = parse_nvidia_smi(log().replace("</nvidia_smi_log>", f"{lost}</nvidia_smi_log>"))["devices"]
    assert devices["0000:61:00.0"] == {"failed": "GPU is lost"}
    assert devices[ADDRESS]["name"] == {"value": "NVIDIA H100"}


@pytest.mark.parametrize("group", ["temperature", "ecc_errors", "pci", "processes", "clocks_event_reasons"])
def test_a_group_that_says_the_gpu_is_lost_makes_the_gpu_lost(group):
    assert device(f"<{group}>GPU is lost</{group}>") == {"failed": "GPU is lost"}


def test_a_group_that_reports_an_error_makes_its_readings_failed_and_no_others():
    gpu = device("<temperature>Unknown Error</temperature><ecc_errors>\n<volatile>ERR!</volatile>\n</ecc_errors>")
    assert gpu["temperature"]["gpu_c"] == {"failed": "Unknown Error"}
    assert gpu["ecc"]["volatile"]["uncorrected"] == {"failed": "ERR!"}
    assert gpu["ecc"]["aggregate"]["uncorrected"].keys() == {"unsupported"}
    assert gpu["name"] == {"value": "NVIDIA H100"}


def test_what_is_said_beside_the_xml_is_kept():
    no_handle = "Unable to determine the device handle for GPU0000:61:00.0: GPU is lost. Reboot to recover this GPU\n"
    branch = parse_nvidia_smi(f"{no_handle}{log()}\nWARNING: infoROM is corrupted at gpu 0000:1B:00.0\n")
    assert branch["devices"]["0000:61:00.0"] == {"failed": no_handle.strip()}
    assert branch["devices"][ADDRESS]["inforom"]["valid"] == {"value": False}
    assert device()["inforom"]["valid"].keys() == {"unsupported"}, "silence is no proof"


def test_no_xml_at_all_says_what_was_said_instead():
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    assert parse_nvidia_smi(said) == {"failed": said}
    assert parse_nvidia_smi("<html></html>") == {"failed": "nvidia-smi -q -x: <html> is not <nvidia_smi_log>"}
    assert parse_nvidia_smi(log()[:-9])["failed"].startswith("nvidia-smi -q -x: ")
    assert parse_nvidia_smi(b"").keys() == {"failed"}


def test_hostile_xml_is_refused():
    entities = '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    bomb = f"<!DOCTYPE x [{entities}]><nvidia_smi_log>&b;</nvidia_smi_log>"
    assert parse_nvidia_smi(bomb) == {"failed": "nvidia-smi -q -x: it declares an entity"}
    elsewhere = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><nvidia_smi_log>&a;</nvidia_smi_log>'
    assert parse_nvidia_smi(elsewhere) == {"failed": "nvidia-smi -q -x: it declares an entity"}
    assert "elements deep" in parse_nvidia_smi("<a>" * 1000)["failed"]
    assert parse_nvidia_smi(HEAD + "<nvidia_smi_log><gpu>&a;</gpu></nvidia_smi_log>").keys() <= {
        "failed",
        "source",
        *parse_nvidia_smi(log()),
    }


def test_without_nvidia_smi_it_is_absent(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert read_nvidia_smi() == {"absent": "nvidia-smi is not installed"}


TEXT = st.sampled_from(
    [
        "N/A",
        "ERR!",
        "Yes",
        "No",
        "12 MiB",
        "nan W",
        "inf",
        "1e999 W",
        "9" * 5000,
        "-2 C",
        "16x",
        "²",
        "٣",
        "[]",
        "\u0000",
        "",
    ]
) | st.text(max_size=12)


@given(st.binary(max_size=300) | st.text(max_size=300))
def test_whatever_is_printed_ends_in_readings(printed):
    assert list(leaves(parse_nvidia_smi(printed)))


@given(words=st.lists(TEXT, min_size=1, max_size=6), data=st.data())
def test_whatever_the_elements_hold_ends_in_json_that_is_readings(words, data):
    paths = ["serial", "clocks/sm_clock", "fb_memory_usage/total", "processes/process_info/pid", "fabric/cliqueId"]
    inside = []
    for word in words:
        *above, last = data.draw(st.sampled_from(paths)).split("/")
        escaped = word.replace("&", "&amp;").replace("<", "&lt;")
        inside.append("".join(f"<{one}>" for one in [*above, last]) + escaped)
        inside.append("".join(f"</{one}>" for one in [last, *reversed(above)]))
    branch = parse_nvidia_smi(log(*inside))
    assert list(leaves(branch))
    json.dumps(branch, allow_nan=False)


def test_the_recording_of_a_whole_node_is_read_whole():
    branch = parse_nvidia_smi(RECORDED.read_bytes())
    assert (branch["driver"], branch["count"]) == ({"value": "570.172.08"}, {"value": 8})
    assert len(branch["devices"]) == 8
    assert not [leaf for leaf in leaves(branch) if "failed" in leaf]


@given(st.integers(0, 40_000), st.binary(max_size=8))
def test_a_recording_that_was_spoilt_anywhere_is_still_readings(at, bytes_there):
    content = RECORDED.read_bytes()
    assert list(leaves(parse_nvidia_smi(content[:at] + bytes_there + content[at + len(bytes_there) :])))
    assert list(leaves(parse_nvidia_smi(content[:at])))


@pytest.mark.parametrize(("name", "count", "generation"), [("qx-a100.xml", 1, 4), ("qx-h100.xml", 8, 5)])
def test_recordings_of_real_gpus_are_read_whole(name, count, generation):
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"no {name}: set ASSAY_SAMPLES to the folder of public recordings")
    branch = parse_nvidia_smi(path.read_bytes())
    assert branch["count"] == {"value": count}
    assert len(branch["devices"]) == count
    for gpu in branch["devices"].values():
        assert gpu["pcie"]["generation"] == {"value": generation}
        assert gpu["remap"]["histogram"]["none"] == {"value": 0}
        assert gpu["ecc"]["sram_threshold_exceeded"] == {"value": False}
        assert not [leaf for leaf in leaves(gpu) if "failed" in leaf]
