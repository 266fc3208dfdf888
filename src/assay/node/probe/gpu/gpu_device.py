"""Reads one GPU: identity, PCIe link, settings, processes, load, memory with its errors and repairs, clocks and heat.

Each reading is its own question, so that one refusal hides nothing else.
"""

from __future__ import annotations

from ctypes import byref
from typing import Any

from assay.model.reading import ReadingTree, value
from assay.node.probe.gpu.nvlink import read_fabric, read_nvlink
from assay.node.probe.gpu.nvml import GPU_LOST, NvmlGpu, NvmlQuestion
from assay.node.probe.node_access import LazyTree, NodeRoot

CORRECTED = 0  # nvmlMemoryErrorType_t
UNCORRECTED = 1
VOLATILE = 0  # nvmlEccCounterType_t
AGGREGATE = 1
DRAM = 2  # nvmlMemoryLocation_t
SRAM = 7
SINGLE_BIT = 0  # nvmlPageRetirementCause_t
DOUBLE_BIT = 1
THROTTLE_REASONS = (  # nvmlClocksEventReason…, by bit
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)
GRAPHICS = 0  # nvmlClockType_t
SM = 1
MEMORY = 2
THROTTLE_TIME_FIELDS = {  # NVML_FI_DEV_PERF_POLICY_… and, from driver 575 on, NVML_FI_DEV_CLOCKS_EVENT_REASON_…, in ns
    "thermal_us": 75,
    "power_cap_us": 74,
    "software_thermal_us": 269,
    "hardware_thermal_us": 270,
    "power_brake_us": 271,
}
SENSOR = 0  # NVML_TEMPERATURE_GPU
MEMORY_TEMPERATURE = 82  # NVML_FI_DEV_MEMORY_TEMP
OEM = 0  # nvmlInforomObject_t
ECC = 1
POWER = 2
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


def read_device(gpu: NvmlGpu, root: NodeRoot) -> LazyTree:
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
        **read_use(gpu, root),
    }


def _identity(gpu: NvmlGpu) -> LazyTree:
    def validate_inforom() -> ReadingTree:
        """Let the driver check the InfoROM against its checksums; this reads the flash and writes nothing."""
        corrupted = str(gpu.nvml.Error(gpu.nvml.bindings.NVML_ERROR_CORRUPTED_INFOROM))
        leaf: ReadingTree = gpu.ask("nvmlDeviceValidateInforom", into=lambda _: value(True))
        return value(False) if leaf.get("failed") == corrupted else leaf

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
            "valid": validate_inforom,
        },
    }


def _pcie(gpu: NvmlGpu) -> LazyTree:
    return {
        "generation": gpu.ask_later("nvmlDeviceGetCurrPcieLinkGeneration"),
        "generation_max": gpu.ask_later("nvmlDeviceGetMaxPcieLinkGeneration"),
        "width": gpu.ask_later("nvmlDeviceGetCurrPcieLinkWidth"),
        "width_max": gpu.ask_later("nvmlDeviceGetMaxPcieLinkWidth"),
        "replays": gpu.ask_later("nvmlDeviceGetPcieReplayCounter"),
    }


def read_use(gpu: NvmlGpu, root: NodeRoot) -> LazyTree:
    """Return the branches `mig`, `processes`, `utilisation` and the leaves of modes and the recovery action."""

    def read_modes(modes: list[int]) -> ReadingTree:
        return {"enabled": value(bool(modes[0])), "pending": value(bool(modes[1]))}

    def read_rates(rates: Any) -> ReadingTree:
        return {"gpu_percent": value(rates.gpu), "memory_percent": value(rates.memory)}

    def read_recovery_action() -> ReadingTree:
        (leaf,) = gpu.read_fields([(RECOVERY_ACTION, 0)])
        return value(_name(RECOVERY_ACTIONS, leaf["value"])) if "value" in leaf else leaf

    return {
        "mig": gpu.ask_branch_later(read_modes, "nvmlDeviceGetMigMode"),
        "persistence": gpu.ask_later("nvmlDeviceGetPersistenceMode", then=bool),
        "compute_mode": gpu.ask_later("nvmlDeviceGetComputeMode", then=lambda mode: _name(COMPUTE_MODES, mode)),
        "processes": lambda: _processes(gpu, root),
        "utilisation": gpu.ask_branch_later(read_rates, "nvmlDeviceGetUtilizationRates"),
        "recovery_action": read_recovery_action,
    }


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else f"number {number}"


def _processes(gpu: NvmlGpu, root: NodeRoot) -> ReadingTree:
    """Return the `count` and the `pids` of the GPU's processes; a kind that this driver cannot list counts as none.

    `cgroups` has the control group of each, in the same order: it names the job or pod. "" for one that has ended.
    """
    pids: set[int] = set()
    answers: list[ReadingTree] = [_ask_pids(gpu, *names)() for names in PROCESS_QUESTIONS]
    for answer in answers:
        if "value" not in answer and ("failed" in answer or answer is answers[0]):
            return answer
        pids |= set(answer.get("value", ()))
    cgroups = [_read_cgroup(root, pid) for pid in sorted(pids)]
    return {"count": value(len(pids)), "pids": value(sorted(pids)), "cgroups": value(cgroups)}


def _read_cgroup(root: NodeRoot, pid: int) -> str:
    try:
        return " ".join(root.read_text(f"/proc/{pid}/cgroup").split())
    except OSError:
        return ""


def _ask_pids(gpu: NvmlGpu, newer: str, older: str) -> NvmlQuestion:
    def numbers(processes: Any) -> list[int]:
        return [process.pid for process in processes]

    return gpu.ask_first_supported(gpu.ask_later(newer, then=numbers), gpu.ask_later(older, then=numbers))


def read_ecc(gpu: NvmlGpu) -> LazyTree:
    """Return the branch `ecc`: the mode, now and after the next reset, and the errors since boot and in total."""
    return {
        "enabled": gpu.ask_later("nvmlDeviceGetCurrentEccMode", then=bool),
        "pending": gpu.ask_later("nvmlDeviceGetPendingEccMode", then=bool),
        "volatile": _errors(gpu, VOLATILE),
        "aggregate": _errors(gpu, AGGREGATE),
        "sram_threshold_exceeded": _sram_threshold(gpu),
    }


def _errors(gpu: NvmlGpu, counter: int) -> LazyTree:
    def at(location: int, kind: int) -> NvmlQuestion:
        return gpu.ask_later("nvmlDeviceGetMemoryErrorCounter", kind, counter, location)

    return {
        "corrected": gpu.ask_later("nvmlDeviceGetTotalEccErrors", CORRECTED, counter),
        "uncorrected": gpu.ask_later("nvmlDeviceGetTotalEccErrors", UNCORRECTED, counter),
        "sram_corrected": at(SRAM, CORRECTED),
        "sram_uncorrected": at(SRAM, UNCORRECTED),
        "dram_corrected": at(DRAM, CORRECTED),
        "dram_uncorrected": at(DRAM, UNCORRECTED),
    }


def _sram_threshold(gpu: NvmlGpu) -> NvmlQuestion:
    def ask() -> ReadingTree:
        status = gpu.nvml.bindings.c_nvmlEccSramErrorStatus_v1_t()
        leaf: ReadingTree = gpu.ask(
            "nvmlDeviceGetSramEccErrorStatus", byref(status), into=lambda _: value(bool(status.bThresholdExceeded))
        )
        return leaf

    return ask


def read_retired_pages(gpu: NvmlGpu) -> LazyTree:
    """Return the branch `retired_pages`, for GPUs before Ampere; later ones remap rows instead."""
    return {
        "single_bit": gpu.ask_later("nvmlDeviceGetRetiredPages", SINGLE_BIT, then=len),
        "double_bit": gpu.ask_later("nvmlDeviceGetRetiredPages", DOUBLE_BIT, then=len),
        "pending": gpu.ask_later("nvmlDeviceGetRetiredPagesPendingStatus", then=bool),
    }


def read_remap(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the branch `remap`: remapped rows, whether one is pending or failed, and spare rows."""

    def count_banks(banks: Any) -> ReadingTree:
        """Return how many banks have all, many, some, few or no spare rows left."""
        return {left: value(getattr(banks, left)) for left in ("max", "high", "partial", "low", "none")}

    def branch(rows: tuple[int, int, int, int]) -> LazyTree:
        correctable, uncorrectable, pending, failure = rows
        return {
            "correctable": value(correctable),
            "uncorrectable": value(uncorrectable),
            "pending": value(bool(pending)),
            "failed": value(bool(failure)),
            "histogram": gpu.ask_branch_later(count_banks, "nvmlDeviceGetRowRemapperHistogram"),
        }

    return gpu.ask_branch_later(branch, "nvmlDeviceGetRemappedRows")


def read_repair(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the branch `repair`: whether the next reset repairs a memory channel or a TPC."""

    def branch(pending: list[int]) -> ReadingTree:
        return {"channel_pending": value(bool(pending[0])), "tpc_pending": value(bool(pending[1]))}

    return gpu.ask_branch_later(branch, "nvmlDeviceGetRepairStatus")


def read_frame_buffer(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the branch `memory`: bytes of the frame buffer. The call allocates no memory."""

    def branch(memory: Any) -> ReadingTree:
        return {f"{part}_bytes": value(getattr(memory, part)) for part in ("total", "used", "free")}

    return gpu.ask_branch_later(branch, "nvmlDeviceGetMemoryInfo")


SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX = range(4)  # nvmlTemperatureThresholds_t


def read_clocks(gpu: NvmlGpu) -> LazyTree:
    """Return the branch `clocks`: MHz, now and at most, and the application clocks as set and by default."""
    return {
        "sm_mhz": gpu.ask_later("nvmlDeviceGetClockInfo", SM),
        "sm_max_mhz": gpu.ask_later("nvmlDeviceGetMaxClockInfo", SM),
        "memory_mhz": gpu.ask_later("nvmlDeviceGetClockInfo", MEMORY),
        "memory_max_mhz": gpu.ask_later("nvmlDeviceGetMaxClockInfo", MEMORY),
        "application_mhz": gpu.ask_later("nvmlDeviceGetApplicationsClock", GRAPHICS),
        "application_memory_mhz": gpu.ask_later("nvmlDeviceGetApplicationsClock", MEMORY),
        "application_default_mhz": gpu.ask_later("nvmlDeviceGetDefaultApplicationsClock", GRAPHICS),
    }


def read_throttle(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the names of the active reasons. Drivers before 535 have the call's older name."""
    return gpu.ask_first_supported(
        gpu.ask_later("nvmlDeviceGetCurrentClocksEventReasons", then=name_throttle_reasons),
        gpu.ask_later("nvmlDeviceGetCurrentClocksThrottleReasons", then=name_throttle_reasons),
    )


def read_throttled(gpu: NvmlGpu) -> ReadingTree:
    """Return the branch `throttled`: microseconds of each reason since the driver started."""
    leaves = gpu.read_fields([(field, 0) for field in THROTTLE_TIME_FIELDS.values()])
    return {
        name: value(leaf["value"] // 1000) if "value" in leaf else leaf
        for name, leaf in zip(THROTTLE_TIME_FIELDS, leaves, strict=True)
    }


def name_throttle_reasons(bits: int) -> list[str]:
    """Return the name of every reason that is set; a reason that is newer than this list is `bit 11`."""
    return [
        THROTTLE_REASONS[bit] if bit < len(THROTTLE_REASONS) else f"bit {bit}"
        for bit in range(bits.bit_length())
        if bits >> bit & 1
    ]


def ask_gpu_temperature(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the core's temperature, °C."""
    return gpu.ask_first_supported(
        gpu.ask_later("nvmlDeviceGetTemperatureV", SENSOR),
        gpu.ask_later("nvmlDeviceGetTemperature", SENSOR),
    )


def read_temperature(gpu: NvmlGpu, now: ReadingTree) -> LazyTree:
    """Return the branch `temperature`, °C; `now` is the core's leaf, `margin_c` the distance to slowdown."""
    return {
        "gpu_c": now,
        "memory_c": lambda: gpu.read_fields([(MEMORY_TEMPERATURE, 0)])[0],
        "margin_c": gpu.ask_later("nvmlDeviceGetMarginTemperature"),
        "shutdown_c": gpu.ask_later("nvmlDeviceGetTemperatureThreshold", SHUTDOWN),
        "slowdown_c": gpu.ask_later("nvmlDeviceGetTemperatureThreshold", SLOWDOWN),
        "operating_max_c": gpu.ask_later("nvmlDeviceGetTemperatureThreshold", GPU_MAX),
        "memory_max_c": gpu.ask_later("nvmlDeviceGetTemperatureThreshold", MEMORY_MAX),
    }


def read_power(gpu: NvmlGpu) -> LazyTree:
    """Return the branch `power`, W: the draw, and the limits: in force, requested, default and highest."""
    return {
        "draw_w": gpu.ask_later("nvmlDeviceGetPowerUsage", then=_watts),
        "limit_w": gpu.ask_later("nvmlDeviceGetEnforcedPowerLimit", then=_watts),
        "requested_w": gpu.ask_later("nvmlDeviceGetPowerManagementLimit", then=_watts),
        "default_w": gpu.ask_later("nvmlDeviceGetPowerManagementDefaultLimit", then=_watts),
        "max_w": gpu.ask_later(
            "nvmlDeviceGetPowerManagementLimitConstraints", then=lambda least_most: least_most[1] / 1000
        ),
    }


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000
