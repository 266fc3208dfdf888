"""The stub libnvidia-ml.so.1, called through NVIDIA's own bindings as they come from the wheel."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.lab.node import stub as builder
from assay.lab.node.replayed_nvml import read_replayed_gpus
from assay.lab.node.stub import SONAME, SOURCE, build_stub, stub_answers
from assay.lab.virtual_node_state import VirtualNodeState

Healthy = Callable[[str], VirtualNodeState]
Ask = Callable[..., dict[str, Any]]

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler (package gcc) for the stub NVML")
LACKING = (  # what drivers before 535 do not know
    *("DeviceGetCurrentClocksEventReasons", "DeviceGetRemappedRows", "DeviceGetIndex", "DeviceGetTemperatureV"),
    *("DeviceGetMarginTemperature", "DeviceGetGpuFabricInfoV", "DeviceGetSramEccErrorStatus", "DeviceGetRepairStatus"),
    *("DeviceGetComputeRunningProcesses_v3", "DeviceValidateInforom"),
)
READ = """
import json
from assay.node.probe.node_access import NodeRoot
from assay.node.probe.gpu.gpu_list import read_gpus
from assay.node.probe.node_access import resolve_lazy
print(json.dumps(resolve_lazy(read_gpus(NodeRoot()))))
"""


@pytest.fixture
def ask(world: Any, tmp_path: Path) -> Ask:
    """Read the GPUs through a library that answers from a flat dict."""

    def read(flat: dict[str, Any], library: Path | None = None) -> dict[str, Any]:
        (tmp_path / "nvml.json").write_text(json.dumps(flat))
        found = library or build_stub(world.home / "lib")
        assert found is not None
        environment = {**os.environ, "LD_LIBRARY_PATH": str(found.parent), "NVML_STUB": str(tmp_path / "nvml.json")}
        done = subprocess.run(
            [sys.executable, "-c", READ], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return read


def test_the_bindings_are_nvidias_own_unmodified() -> None:
    files = importlib.metadata.files("nvidia-ml-py")
    assert files is not None
    (module,) = [file for file in files if str(file) == "pynvml.py"]
    content = Path(str(module.locate())).read_bytes()
    assert module.hash is not None
    assert base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode() == module.hash.value


NO_PROCESSES = [2**22 + 7, 2**22 + 4242]
"""Beyond the kernel's largest process id: no process of this machine has them."""


@needs_compiler
def test_the_source_compiles_without_a_warning(tmp_path: Path) -> None:
    command = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(tmp_path / SONAME), str(SOURCE)]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


@needs_compiler
def test_what_is_asked_and_what_is_replayed_are_the_same(healthy: Healthy, ask: Ask, tmp_path: Path) -> None:
    state = healthy("n0001")
    state["gpus"][2] |= {"temperature_c": 93.0, "throttle": 0x60, "remap_pending": 1, "ecc_volatile_corrected": 12}
    state["gpus"][6]["present"] = False
    state["gpus"][7] |= {"sram_threshold_exceeded": True, "ecc_aggregate_sram_uncorrected": 2, "recovery_action": 1}
    state["gpus"][0] |= {
        "fabric_state": 2,
        "inforom_valid": False,
        "pids": [*reversed(NO_PROCESSES)],
        "mig_pending": True,
    }
    state["gpus"][1] |= {"nvlink_errors": {"4": {"recoveries": 9}}, "nvlink_up": 17, "compute_mode": 3}
    state["gpus"][3] |= {"nvlink_generation": 5, "fabric_health": 0xAA, "fabric_summary": 3, "ecc_pending": False}
    asked = ask(stub_answers(state))
    assert asked == read_replayed_gpus(state, tmp_path)
    assert asked["devices"]["0000:43:00.0"]["nvlink"]["link"]["4"]["recoveries"] == {"value": 9}
    assert asked["devices"]["0000:61:00.0"]["fabric"]["health"]["summary"] == {"value": "limited_capacity"}
    assert asked["devices"]["0000:1b:00.0"]["processes"]["pids"] == {"value": NO_PROCESSES}


@needs_compiler
def test_an_older_gpu_has_retired_pages_and_no_margin(healthy: Healthy, ask: Ask) -> None:
    flat = stub_answers(healthy("n0001")) | {
        "g0.retired_single_bit": 3,
        "g0.retired_double_bit": 0,
        "g0.retired_pending": 1,
    }
    del flat["g0.margin_c"]
    device = ask(flat)["devices"]["0000:1b:00.0"]
    assert device["retired_pages"] == {
        "single_bit": {"value": 3},
        "double_bit": {"value": 0},
        "pending": {"value": True},
    }
    assert device["temperature"]["margin_c"] == {"unsupported": "Not Supported"}


@needs_compiler
def test_links_of_an_older_generation_are_asked_by_their_older_counters(healthy: Healthy, ask: Ask) -> None:
    flat = stub_answers(healthy("n0001")) | {"g0.nvlink_generation": 3, "g0.nvlink5_crc_errors": 12}
    links = ask(flat)["devices"]["0000:1b:00.0"]["nvlink"]["link"]
    assert links["5"]["crc_errors"] == {"value": 12}
    assert links["4"] == {
        "up": {"value": True},
        "speed_gb_s": {"value": 26.562},
        **{name: {"value": 0} for name in ("replays", "recoveries", "crc_errors")},
    }


@needs_compiler
def test_a_number_that_is_newer_than_its_names_is_told_as_a_number(healthy: Healthy, ask: Ask) -> None:
    newer = {"g0.recovery_action": 42, "g0.compute_mode": 9, "g0.fabric_summary": 9, "g0.throttle": 1 << 12}
    device = ask(stub_answers(healthy("n0001")) | newer)["devices"]["0000:1b:00.0"]
    assert device["recovery_action"] == {"value": "number 42"}
    assert device["compute_mode"] == {"value": "number 9"}
    assert device["fabric"]["health"]["summary"] == {"value": "number 9"}
    assert device["throttle"] == {"value": ["bit 12"]}


@needs_compiler
def test_a_gpu_outside_any_fabric_is_unsupported_and_one_that_was_refused_says_why(healthy: Healthy, ask: Ask) -> None:
    flat = stub_answers(healthy("n0001")) | {"g0.fabric_state": 0, "g1.fabric_status": 999}
    devices = ask(flat)["devices"]
    assert devices["0000:1b:00.0"]["fabric"] == {"unsupported": "this GPU is part of no NVLink fabric"}
    assert devices["0000:43:00.0"]["fabric"]["status"] == {"value": "unknown_error"}


@needs_compiler
def test_a_question_that_the_hardware_cannot_answer_is_unsupported(healthy: Healthy, ask: Ask) -> None:
    flat = stub_answers(healthy("n0001"))
    for key in ("g0.remap_correctable", "g0.nvlink_links", "g0.memory_temperature_c", "g0.ecc_enabled"):
        del flat[key]
    device = ask(flat)["devices"]["0000:1b:00.0"]
    assert list(device["remap"]) == list(device["nvlink"]) == ["unsupported"]
    assert device["temperature"]["memory_c"] == {"unsupported": "Not Supported"}
    assert device["ecc"]["enabled"] == {"unsupported": "Not Supported"}
    assert device["ecc"]["volatile"]["corrected"] == {"value": 0}


@needs_compiler
def test_an_older_driver_lacks_calls_and_the_rest_is_read(healthy: Healthy, ask: Ask, tmp_path: Path) -> None:
    lacking = [f"-Dnvml{name}=absent_{name}" for name in LACKING]
    library = tmp_path / SONAME
    subprocess.run(["cc", "-shared", "-fPIC", *lacking, "-o", str(library), str(SOURCE)], check=True)
    state = healthy("n0001")
    state["gpus"][0]["throttle"] = 0x8
    device = ask(stub_answers(state), library)["devices"]["0000:1b:00.0"]
    assert device["throttle"] == {"value": ["hw_slowdown"]}, "asked by its older name"
    lacks = {"unsupported": "Function Not Found"}
    assert device["remap"] == device["index"] == device["repair"] == device["processes"] == lacks
    assert device["temperature"]["margin_c"] == device["ecc"]["sram_threshold_exceeded"] == lacks
    assert device["inforom"]["valid"] == lacks
    assert device["temperature"]["gpu_c"].keys() == {"value"}, "asked by its older name"
    assert device["fabric"]["state"] == {"value": "completed"}, "asked by its first form"
    assert device["fabric"]["health"]["summary"].keys() == {"unsupported"}
    assert device["pcie"]["width"] == {"value": 16}


@needs_compiler
def test_a_gpu_that_asks_for_a_reset_failed_for_that_reason(healthy: Healthy, ask: Ask) -> None:
    flat = stub_answers(healthy("n0001")) | {"g1.rc": 16}
    devices = ask(flat)["devices"]
    assert devices["index 1"] == {"failed": "GPU requires restart"}, "no driver list on this machine names its place"
    assert len(devices) == 8


@needs_compiler
def test_a_library_without_a_driver_behind_it_failed(ask: Ask) -> None:
    assert ask({}) == {"failed": "NVML did not start: Driver Not Loaded"}


@needs_compiler
def test_no_gpu_at_all_is_absent_not_an_empty_list(ask: Ask) -> None:
    gpu = ask({"count": 0, "driver": "570"})
    assert gpu["count"] == {"value": 0}
    assert gpu["devices"] == {"absent": "NVML counts no GPU"}


def test_without_a_library_the_branch_is_absent() -> None:
    environment = {name: text for name, text in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, env=environment, check=False)
    gpu = json.loads(done.stdout)
    assert gpu == {"absent": "no NVIDIA driver: libnvidia-ml.so.1 not found"} or "driver" in gpu


@needs_compiler
def test_the_library_is_built_once(tmp_path: Path) -> None:
    first = build_stub(tmp_path)
    assert first is not None
    stamp = first.stat().st_mtime_ns
    assert build_stub(tmp_path) == first
    assert first.stat().st_mtime_ns == stamp


def test_no_compiler_or_a_broken_one_means_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "find_compiler", lambda: None)
    assert build_stub(tmp_path / "a") is None
    monkeypatch.setattr(builder, "find_compiler", lambda: "/bin/false")
    assert build_stub(tmp_path / "b") is None
