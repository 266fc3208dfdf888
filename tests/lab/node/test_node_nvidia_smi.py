"""The lab's nvidia-smi agrees with NVML, and the probe reads it when NVML cannot be loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from assay.lab.tools.nvidia_smi import format_smi_xml
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.reading import parse_reading
from assay.node.probe.gpu.nvidia_smi import parse_nvidia_smi

Healthy = Callable[[str], VirtualNodeState]

SMI_REFUSAL = "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"
# What nvidia-smi -q -x cannot tell, or tells in its own way, of what NVML can.
NOT_PRINTED = {"nvlink", "inforom/valid", "temperature/shutdown_c", "temperature/slowdown_c"}
NOT_PRINTED |= {"temperature/operating_max_c", "temperature/memory_max_c"}


def leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if parse_reading(tree):
        yield "/".join(path), tree
        return
    for name, branch in tree.items():
        yield from leaves(branch, (*path, name))


def spoil(state: VirtualNodeState) -> None:
    state["gpus"][0] |= {"throttle": 0x81, "remap_pending": 1, "ecc_volatile_uncorrected": 3, "recovery_action": 4}
    state["gpus"][1] |= {"pids": [4242, 77], "mig_enabled": True, "fabric_state": 2, "persistence": False}
    state["gpus"][2] |= {"sram_threshold_exceeded": True, "ecc_aggregate_sram_uncorrected": 5, "compute_mode": 3}


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler (package gcc) for the stub NVML")
@pytest.mark.parametrize("made", [lambda state: None, spoil])
def test_both_ways_to_read_say_the_same(node: Any, made: Callable[[VirtualNodeState], None]) -> None:
    node.change(made)
    asked = node.probe()["gpu"]["devices"]
    printed = parse_nvidia_smi(format_smi_xml(node.world.load(node.name)))["devices"]
    assert list(printed) == list(asked)
    for address, gpu in asked.items():
        of_nvml, of_smi = dict(leaves(gpu)), dict(leaves(printed[address]))
        lacking = {path for path, leaf in of_smi.items() if "value" not in leaf}
        assert {path for path in lacking if "value" in of_nvml.get(path, {"value": 0})} <= NOT_PRINTED
        for path in of_smi.keys() - lacking:
            assert of_smi[path] == of_nvml[path], (address, path)


def test_a_lost_gpu_and_a_corrupted_inforom_are_said_beside_the_xml(healthy: Healthy) -> None:
    state = healthy("n0001")
    state["gpus"][3]["lost"] = True
    state["gpus"][5]["inforom_valid"] = False
    devices = parse_nvidia_smi(format_smi_xml(state))["devices"]
    assert "GPU is lost" in devices["0000:61:00.0"]["failed"]
    assert devices["0000:c3:00.0"]["inforom"]["valid"] == {"value": False}
    assert len(devices) == 8


def test_where_nvml_cannot_be_loaded_the_probe_reads_nvidia_smi(node: Any) -> None:
    node.change(lambda state: state["gpus"][2].update(temperature_c=91))
    hidden = (
        "import os, runpy, sys; sys.modules['pynvml'] = None; runpy.run_module('assay.node.probe', run_name='__main__')"
    )
    gpu = json.loads(node.run("python3", "-c", hidden).stdout)["probe"]["gpu"]
    assert (gpu["source"], gpu["count"]) == ({"value": "nvidia-smi"}, {"value": 8})
    assert gpu["devices"]["0000:52:00.0"]["temperature"]["gpu_c"] == {"value": 91}
    assert gpu["devices"]["0000:52:00.0"]["nvlink"].keys() == {"unsupported"}


def test_the_labs_nvidia_smi_refuses_what_it_does_not_know(node: Any) -> None:
    done = node.run("nvidia-smi", "-L")
    assert (done.returncode, done.stdout) == (2, SMI_REFUSAL)
    unknown = node.run("nvidia-smi", "--query-gpu=no.such", "--format=csv,noheader,nounits")
    assert (unknown.returncode, unknown.stdout) == (2, 'Field "no.such" is not a valid field to query.\n')


def test_assay_load_finds_the_gpus_by_nvidia_smi(node: Any) -> None:
    done = node.run("python3", "-c", "from assay.node.load.engine import find_gpus; print(len(find_gpus('')))")
    assert (done.stdout, done.stderr) == ("8\n", "")
