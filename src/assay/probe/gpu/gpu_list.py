"""GPUs through NVML, with NVIDIA's own bindings (pynvml); through nvidia-smi where these cannot be loaded.

Devices are known by PCI address: NVML's index moves when a GPU is missing. The kernel driver lists the addresses,
those of lost GPUs too, so each GPU is a question of its own and none waits for another.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from assay.model.reading import absent, failed, value
from assay.probe.gpu.gpu_device import read_device
from assay.probe.gpu.nvidia_smi import DEADLINE_S, read_nvidia_smi
from assay.probe.gpu.nvml import NvmlGpu, NvmlLibrary
from assay.probe.node_access import LazyTree, NodeRoot, TimedQuestion, Tree

DRIVER_LIST = "/proc/driver/nvidia/gpus"


def read_gpus(root: NodeRoot) -> Any:
    """Return the `gpu` branch, still to be asked; or one leaf where neither NVML nor nvidia-smi answers at all."""
    try:
        import pynvml
    except ImportError:
        return _ask_nvidia_smi_or(failed("the NVML bindings (nvidia-ml-py) are not installed for this Python"))
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return _ask_nvidia_smi_or(absent("no NVIDIA driver: libnvidia-ml.so.1 not found"))
        return failed(f"NVML did not start: {error}")
    return build_nvml_branch(NvmlLibrary(pynvml), root)


def _ask_nvidia_smi_or(reason: Tree) -> TimedQuestion:
    """Return the question for what nvidia-smi says; where there is none either, `reason` is why nothing is known."""

    def ask() -> Tree:
        branch = read_nvidia_smi()
        return reason if "absent" in branch else branch

    return TimedQuestion(DEADLINE_S + 1, ask)


def build_nvml_branch(nvml: NvmlLibrary, root: NodeRoot) -> LazyTree:
    """Return the branch as NVML answers it."""
    return {
        "source": value("nvml"),
        "driver": partial(nvml.ask, "nvmlSystemGetDriverVersion"),
        "cuda": partial(nvml.ask, "nvmlSystemGetCudaDriverVersion_v2", into=_cuda),
        "nvml": partial(nvml.ask, "nvmlSystemGetNVMLVersion"),
        "count": partial(nvml.ask, "nvmlDeviceGetCount"),
        "devices": partial(_devices, nvml, root),
    }


def _cuda(version: int) -> Tree:
    return value(f"{version // 1000}.{version % 1000 // 10}")


def _devices(nvml: NvmlLibrary, root: NodeRoot) -> LazyTree:
    listed = _listed(root)
    if listed:
        return {address: partial(_device, nvml, "nvmlDeviceGetHandleByPciBusId", address) for address in listed}
    count: Tree = nvml.ask("nvmlDeviceGetCount")
    if "value" not in count:
        return count
    return dict(_counted(nvml, index) for index in range(count["value"])) or absent("NVML counts no GPU")


def _device(nvml: NvmlLibrary, how: str, which: str | int) -> LazyTree:
    found: LazyTree = nvml.ask(how, which, into=lambda handle: read_device(NvmlGpu(nvml, handle)))
    return found


def _counted(nvml: NvmlLibrary, index: int) -> tuple[str, Any]:
    """Return the GPU at an index, by its address where that can be told: no list of the driver's names it."""
    try:
        handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
        address = format_pci_address(nvml.call("nvmlDeviceGetPciInfo", handle))
    except nvml.Error as error:
        return f"index {index}", nvml.leaf_for_error(error)
    return address, partial(read_device, NvmlGpu(nvml, handle))


def format_pci_address(info: Any) -> str:
    """Return an nvmlPciInfo_t as Linux writes addresses, `0000:1b:00.0`."""
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"


def _listed(root: NodeRoot) -> list[str]:
    """Return the addresses of the GPUs that the kernel driver holds, lost ones too; none where it does not say."""
    try:
        return [name.lower() for name in root.list_names(DRIVER_LIST)]
    except OSError:
        return []
