"""Reads one GPU: identity, PCIe link, settings, processes and load, with the branches of the modules beside this one.

Each reading is its own question, so that one refusal hides nothing else.
"""

from __future__ import annotations

from typing import Any

from assay.model.reading import ReadingTree, value
from assay.node.probe.gpu.clocks_power_temperature import (
    ask_gpu_temperature,
    read_clocks,
    read_power,
    read_temperature,
    read_throttle,
    read_throttled,
)
from assay.node.probe.gpu.memory_ecc_remap import (
    read_ecc,
    read_frame_buffer,
    read_remap,
    read_repair,
    read_retired_pages,
)
from assay.node.probe.gpu.nvlink_and_fabric import read_fabric, read_nvlink
from assay.node.probe.gpu.nvml import GPU_LOST, NvmlGpu, NvmlQuestion
from assay.node.probe.node_access import LazyTree

OEM, ECC, POWER = 0, 1, 2  # nvmlInforomObject_t

COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")  # nvmlComputeMode_t
RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
RECOVERY_ACTIONS = (  # nvmlDeviceGpuRecoveryAction_t, as nvidia-smi writes them
    "none",
    "reset",
    "reboot",
    "drain_p2p",
    "drain_and_reset",
    "recover_imex_domain",
    "bus_reset",
    "system_reboot",
)
PROCESS_QUESTIONS = (  # in full: the pack keeps only those of NVML's bindings that our sources name
    ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"),
)


def read_device(gpu: NvmlGpu) -> LazyTree:
    """Return the branch of one GPU, or one leaf where it is lost.

    The temperature is read at once: it comes from the GPU itself, so it shows whether the GPU answers.
    """
    temperature: ReadingTree = ask_gpu_temperature(gpu)()
    if temperature == GPU_LOST:
        return temperature
    return {
        **_identity(gpu),
        "pcie": _pcie(gpu),
        "clocks": read_clocks(gpu),
        "throttle": read_throttle(gpu),
        "throttled": lambda: read_throttled(gpu),
        "temperature": read_temperature(gpu, temperature),
        "power": read_power(gpu),
        "ecc": read_ecc(gpu),
        "retired_pages": read_retired_pages(gpu),
        "remap": read_remap(gpu),
        "repair": read_repair(gpu),
        "nvlink": read_nvlink(gpu),
        "fabric": read_fabric(gpu),
        "memory": read_frame_buffer(gpu),
        **read_use(gpu),
    }


def _identity(gpu: NvmlGpu) -> LazyTree:
    return {
        "index": gpu.ask_later("nvmlDeviceGetIndex"),
        "name": gpu.ask_later("nvmlDeviceGetName"),
        "serial": gpu.ask_later("nvmlDeviceGetSerial"),
        "uuid": gpu.ask_later("nvmlDeviceGetUUID"),
        "board_part": gpu.ask_later("nvmlDeviceGetBoardPartNumber"),
        "vbios": gpu.ask_later("nvmlDeviceGetVbiosVersion"),
        "gsp": gpu.ask_later("nvmlDeviceGetGspFirmwareVersion", then=bytes.decode),
        "inforom": {
            "image": gpu.ask_later("nvmlDeviceGetInforomImageVersion"),
            "oem": gpu.ask_later("nvmlDeviceGetInforomVersion", OEM),
            "ecc": gpu.ask_later("nvmlDeviceGetInforomVersion", ECC),
            "power": gpu.ask_later("nvmlDeviceGetInforomVersion", POWER),
            "valid": lambda: _inforom_is_valid(gpu),
        },
    }


def _inforom_is_valid(gpu: NvmlGpu) -> ReadingTree:
    """Let the driver check the InfoROM against its checksums; this reads the flash and writes nothing."""
    corrupted = str(gpu.nvml.Error(gpu.nvml.bindings.NVML_ERROR_CORRUPTED_INFOROM))
    leaf: ReadingTree = gpu.ask("nvmlDeviceValidateInforom", into=lambda _: value(True))
    return value(False) if leaf.get("failed") == corrupted else leaf


def _pcie(gpu: NvmlGpu) -> LazyTree:
    return {
        "generation": gpu.ask_later("nvmlDeviceGetCurrPcieLinkGeneration"),
        "generation_max": gpu.ask_later("nvmlDeviceGetMaxPcieLinkGeneration"),
        "width": gpu.ask_later("nvmlDeviceGetCurrPcieLinkWidth"),
        "width_max": gpu.ask_later("nvmlDeviceGetMaxPcieLinkWidth"),
        "replays": gpu.ask_later("nvmlDeviceGetPcieReplayCounter"),
    }


def read_use(gpu: NvmlGpu) -> LazyTree:
    """Return the branches `mig`, `processes`, `utilisation` and the leaves of modes and the recovery action."""
    return {
        "mig": gpu.ask_branch_later(_mig, "nvmlDeviceGetMigMode"),
        "persistence": gpu.ask_later("nvmlDeviceGetPersistenceMode", then=bool),
        "compute_mode": gpu.ask_later("nvmlDeviceGetComputeMode", then=lambda mode: _name(COMPUTE_MODES, mode)),
        "processes": lambda: _processes(gpu),
        "utilisation": gpu.ask_branch_later(_utilisation, "nvmlDeviceGetUtilizationRates"),
        "recovery_action": lambda: _recovery_action(gpu),
    }


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else f"number {number}"


def _mig(modes: list[int]) -> ReadingTree:
    return {"enabled": value(bool(modes[0])), "pending": value(bool(modes[1]))}


def _utilisation(rates: Any) -> ReadingTree:
    return {"gpu_percent": value(rates.gpu), "memory_percent": value(rates.memory)}


def _recovery_action(gpu: NvmlGpu) -> ReadingTree:
    (leaf,) = gpu.read_fields([(RECOVERY_ACTION, 0)])
    return value(_name(RECOVERY_ACTIONS, leaf["value"])) if "value" in leaf else leaf


def _processes(gpu: NvmlGpu) -> ReadingTree:
    """Return the `count` and the `pids` of the GPU's processes; a kind that this driver cannot list counts as none."""
    pids: set[int] = set()
    answers: list[ReadingTree] = [_ask_pids(gpu, *names)() for names in PROCESS_QUESTIONS]
    for answer in answers:
        if "value" not in answer and ("failed" in answer or answer is answers[0]):
            return answer
        pids |= set(answer.get("value", ()))
    return {"count": value(len(pids)), "pids": value(sorted(pids))}


def _ask_pids(gpu: NvmlGpu, newer: str, older: str) -> NvmlQuestion:
    def numbers(processes: Any) -> list[int]:
        return [process.pid for process in processes]

    return gpu.ask_first_supported(gpu.ask_later(newer, then=numbers), gpu.ask_later(older, then=numbers))
