"""AMD's GPUs as amd-smi tells of them in the forms of ROCm 6 and 7, and as rocm-smi does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.model.reading import value
from assay.node.probe.gpu import amd_smi, gpu_list
from assay.node.probe.gpu.amd_smi import build_branch, parse_rocm_smi
from assay.node.probe.node_access import NodeRoot

STATIC = {
    "gpu": 0,
    "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0x9AB7C1"},
    "bus": {"bdf": "0000:05:00.0", "max_pcie_width": 16},
    "vbios": {"version": "022.040.003.043.000001"},
    "driver": {"name": "amdgpu", "version": "6.12.12"},
    "limit": {"max_power": {"value": 750, "unit": "W"}, "slowdown_hotspot_temperature": {"value": 100, "unit": "C"}},
    "vram": {"type": "HBM3", "size": {"value": 196592, "unit": "MB"}},
}
METRIC = {
    "gpu": 0,
    "power": {"socket_power": {"value": 137, "unit": "W"}},
    "temperature": {"edge": "N/A", "hotspot": {"value": 42, "unit": "C"}, "mem": "35 C"},
    "pcie": {"width": 16, "replay_count": 3},
    "ecc": {"total_correctable_count": 7, "total_uncorrectable_count": 1, "total_deferred_count": "N/A"},
}
PAGES = {"gpu": 0, "retired": [{"page_address": "0x1", "page_size": "4096", "status": "RETIRED"}]}
ROCM_6 = {"static": [STATIC], "metric": [METRIC], "bad-pages": [PAGES]}


def branch(answers: dict[str, Any], before: str = "") -> Any:
    return build_branch({name: value(before + json.dumps(answer)) for name, answer in answers.items()})


@pytest.mark.parametrize("form", [lambda rows: rows, lambda rows: {"gpu_data": rows}], ids=["ROCm 6", "ROCm 7"])
def test_each_form_gives_the_branch_that_nvml_gives(form: Any) -> None:
    gpu = branch({name: form(rows) for name, rows in ROCM_6.items()}, "WARNING: User is missing the group render\n")
    assert (gpu["source"], gpu["driver"], gpu["count"]) == (value("amd-smi"), value("6.12.12"), value(1))
    device = gpu["devices"]["0000:05:00.0"]
    assert device["name"] == value("AMD Instinct MI300X")
    assert device["temperature"] == {"gpu_c": value(42), "memory_c": value(35), "slowdown_c": value(100)}
    assert device["ecc"]["volatile"]["corrected"] == value(7)
    assert device["ecc"]["volatile"]["uncorrected"] == value(1)
    assert device["ecc"]["volatile"]["deferred"] == {"absent": "amd-smi metric has no ecc.total_deferred_count"}
    assert (device["bad_pages"], device["pcie"]["replays"]) == (value(1), value(3))
    assert device["memory"]["total_bytes"] == value(196592 * 2**20)


def test_no_bad_page_is_none_and_no_answer_is_not() -> None:
    none = branch(ROCM_6 | {"bad-pages": [{"gpu": 0, "retired": "No bad pages found."}]})
    assert none["devices"]["0000:05:00.0"]["bad_pages"] == value(0)
    other = branch(ROCM_6 | {"bad-pages": [{"gpu": 0, "retired": "N/A"}]})
    assert "absent" in other["devices"]["0000:05:00.0"]["bad_pages"]


def test_a_question_that_fails_fails_alone() -> None:
    answers = {name: value(json.dumps(rows)) for name, rows in ROCM_6.items()}
    device = build_branch(answers | {"metric": {"failed": "amd-smi did not end within 5.5 s"}})["devices"][
        "0000:05:00.0"
    ]
    assert device["temperature"]["gpu_c"] == {"failed": "amd-smi did not end within 5.5 s"}
    assert device["bad_pages"] == value(1)


def test_nonsense_is_no_gpu() -> None:
    assert "named no GPU" in branch({"static": {"error": "no driver"}, "metric": [], "bad-pages": []})["failed"]
    assert "failed" in build_branch(dict.fromkeys(amd_smi.QUESTIONS, value("Traceback (most recent call last)")))
    odd = branch(ROCM_6 | {"metric": [METRIC | {"temperature": {"hotspot": "hot"}}]})
    assert "'hot'" in odd["devices"]["0000:05:00.0"]["temperature"]["gpu_c"]["failed"]


def test_rocm_smi_tells_heat_and_says_what_it_does_not_tell() -> None:
    card = {
        "PCI Bus": "0000:C6:00.0",
        "Card Series": "AMD Instinct MI250X",
        "Temperature (Sensor junction) (C)": "41.0",
        "Temperature (Sensor memory) (C)": "N/A",
        "Current Socket Graphics Package Power (W)": "92.0",
    }
    gpu = parse_rocm_smi("WARNING: low-power state\n" + json.dumps({"card0": card, "system": {}}))
    device = gpu["devices"]["0000:c6:00.0"]
    assert (gpu["count"], device["temperature"]["gpu_c"]) == (value(1), value(41.0))
    assert "absent" in device["temperature"]["memory_c"]
    assert "install amd-smi-lib" in device["ecc"]["absent"]
    assert "rocm-smi gave no JSON" in parse_rocm_smi("ERROR: no driver")["failed"]


def test_a_node_with_amds_driver_alone_asks_no_tool_of_nvidia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_list, "read_amd_gpus", lambda: value("asked AMD"))
    monkeypatch.setenv("PATH", "")
    assert gpu_list.read_gpus(NodeRoot(str(tmp_path))) != value("asked AMD")
    (tmp_path / "sys/module/amdgpu").mkdir(parents=True)
    assert gpu_list.read_gpus(NodeRoot(str(tmp_path))) == value("asked AMD")
    (tmp_path / "proc/driver/nvidia/gpus").mkdir(parents=True)
    assert gpu_list.read_gpus(NodeRoot(str(tmp_path))) != value("asked AMD"), "its processor's graphics are AMD's"


def test_without_any_tool_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "install amd-smi-lib" in amd_smi.read_amd_gpus()["absent"]
