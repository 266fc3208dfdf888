"""One GPU's readings, each asked for by itself so that one refusal hides nothing else."""

from __future__ import annotations

from assay.model.reading import value
from assay.probe.files import Tree
from assay.probe.gpu_clocks import read_clocks, read_throttle, read_throttled
from assay.probe.gpu_fabric import read_fabric
from assay.probe.gpu_heat import gpu_temperature, read_power, read_temperature
from assay.probe.gpu_memory import read_ecc, read_memory, read_remap, read_repair, read_retired_pages
from assay.probe.gpu_nvlink import read_nvlink
from assay.probe.gpu_use import read_use
from assay.probe.lazy import Lazy
from assay.probe.nvml import LOST, Gpu

OEM, ECC, POWER = 0, 1, 2  # nvmlInforomObject_t


def read_device(gpu: Gpu) -> Lazy:
    """Return the branch of one GPU, or one leaf for a GPU that is lost.

    The temperature is asked for first and at once: it comes from the GPU itself, so it tells whether one answers.
    """
    temperature: Tree = gpu_temperature(gpu)()
    if temperature == LOST:
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
        "memory": read_memory(gpu),
        **read_use(gpu),
    }


def _identity(gpu: Gpu) -> Lazy:
    return {
        "index": gpu.asks("nvmlDeviceGetIndex"),
        "name": gpu.asks("nvmlDeviceGetName"),
        "serial": gpu.asks("nvmlDeviceGetSerial"),
        "uuid": gpu.asks("nvmlDeviceGetUUID"),
        "board_part": gpu.asks("nvmlDeviceGetBoardPartNumber"),
        "vbios": gpu.asks("nvmlDeviceGetVbiosVersion"),
        "gsp": gpu.asks("nvmlDeviceGetGspFirmwareVersion", then=bytes.decode),
        "inforom": {
            "image": gpu.asks("nvmlDeviceGetInforomImageVersion"),
            "oem": gpu.asks("nvmlDeviceGetInforomVersion", OEM),
            "ecc": gpu.asks("nvmlDeviceGetInforomVersion", ECC),
            "power": gpu.asks("nvmlDeviceGetInforomVersion", POWER),
            "valid": lambda: _inforom_is_valid(gpu),
        },
    }


def _inforom_is_valid(gpu: Gpu) -> Tree:
    """Have the driver compare the InfoROM with its checksums; it reads the flash and writes nothing."""
    corrupted = str(gpu.nvml.Error(gpu.nvml.bindings.NVML_ERROR_CORRUPTED_INFOROM))
    leaf: Tree = gpu.ask("nvmlDeviceValidateInforom", into=lambda _: value(True))
    return value(False) if leaf.get("failed") == corrupted else leaf


def _pcie(gpu: Gpu) -> Lazy:
    return {
        "generation": gpu.asks("nvmlDeviceGetCurrPcieLinkGeneration"),
        "generation_max": gpu.asks("nvmlDeviceGetMaxPcieLinkGeneration"),
        "width": gpu.asks("nvmlDeviceGetCurrPcieLinkWidth"),
        "width_max": gpu.asks("nvmlDeviceGetMaxPcieLinkWidth"),
        "replays": gpu.asks("nvmlDeviceGetPcieReplayCounter"),
    }
