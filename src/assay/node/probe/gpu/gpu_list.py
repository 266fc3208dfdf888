"""Reads all GPUs: NVIDIA's through NVML, with their bindings (pynvml), AMD's through amd-smi.

GPUs are named by PCI address: NVML's index moves when a GPU is missing. The kernel driver lists the addresses, also
of lost GPUs, so each GPU is a question of its own and none waits for another.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.gpu.amd_smi import DRIVER as AMD_DRIVER
from assay.node.probe.gpu.amd_smi import read_amd_gpus
from assay.node.probe.gpu.gpu_device import read_device
from assay.node.probe.gpu.nvml import NvmlGpu, NvmlLibrary
from assay.node.probe.node_access import LazyTree, NodeRoot

DRIVER_LIST = "/proc/driver/nvidia/gpus"


def read_gpus(root: NodeRoot) -> Any:
    """Return the lazy `gpu` branch, or one leaf where NVML is not there. A node with AMD's driver alone has no NVML."""
    if root.exists(AMD_DRIVER) and not root.exists(DRIVER_LIST):
        return read_amd_gpus()
    try:
        import pynvml
    except ImportError:
        return failed("the NVML bindings (nvidia-ml-py) are not installed for this Python")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return absent("no NVIDIA driver: libnvidia-ml.so.1 not found")
        return failed(f"NVML did not start: {error}")
    return build_nvml_branch(NvmlLibrary(pynvml), root)


def count_gpus(root: NodeRoot) -> int:
    """Return how many GPUs the driver knows, lost ones too; 0 without a driver."""
    try:
        return len(root.list_names(DRIVER_LIST))
    except OSError:
        return 0


def build_nvml_branch(nvml: NvmlLibrary, root: NodeRoot) -> LazyTree:
    """Return the lazy `gpu` branch of NVML."""

    def read_cuda(version: int) -> ReadingTree:
        return value(f"{version // 1000}.{version % 1000 // 10}")

    return {
        "source": value("nvml"),
        "driver": partial(nvml.ask, "nvmlSystemGetDriverVersion"),
        "cuda": partial(nvml.ask, "nvmlSystemGetCudaDriverVersion_v2", into=read_cuda),
        "nvml": partial(nvml.ask, "nvmlSystemGetNVMLVersion"),
        "count": partial(nvml.ask, "nvmlDeviceGetCount"),
        "devices": partial(_devices, nvml, root),
    }


def _devices(nvml: NvmlLibrary, root: NodeRoot) -> LazyTree:
    addresses = _list_addresses(root)
    if addresses:
        return {address: partial(_device_at_address, nvml, root, address) for address in addresses}
    count: ReadingTree = nvml.ask("nvmlDeviceGetCount")
    if "value" not in count:
        return count
    return dict(_device_at_index(nvml, root, index) for index in range(count["value"])) or absent("NVML counts no GPU")


def _device_at_address(nvml: NvmlLibrary, root: NodeRoot, address: str) -> LazyTree:
    branch: LazyTree = nvml.ask(
        "nvmlDeviceGetHandleByPciBusId", address, into=lambda handle: read_device(NvmlGpu(nvml, handle), root)
    )
    return branch


def _device_at_index(nvml: NvmlLibrary, root: NodeRoot, index: int) -> tuple[str, Any]:
    """Return the name and the question of the GPU at an index; its name is the address where NVML knows it."""
    try:
        handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
        address = format_pci_address(nvml.call("nvmlDeviceGetPciInfo", handle))
    except nvml.Error as error:
        return f"index {index}", nvml.leaf_for_error(error)
    return address, partial(read_device, NvmlGpu(nvml, handle), root)


def format_pci_address(info: Any) -> str:
    """Return an nvmlPciInfo_t as Linux writes addresses, `0000:1b:00.0`."""
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"


def _list_addresses(root: NodeRoot) -> list[str]:
    """Return the addresses of the kernel driver's GPUs, lost ones too; none where it does not list them."""
    try:
        return [name.lower() for name in root.list_names(DRIVER_LIST)]
    except OSError:
        return []
