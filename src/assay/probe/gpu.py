"""GPUs through NVML, with NVIDIA's own bindings (pynvml).

Devices are known by PCI address: NVML's index moves when a GPU is missing. A lost GPU gives no handle, so its
address is the one that the driver lists and no handle answered for.
"""

from __future__ import annotations

from typing import Any

from assay.model.reading import absent, failed
from assay.probe.files import Root, Tree
from assay.probe.gpu_device import read_device
from assay.probe.nvml import Lost, Nvml

DRIVER_LIST = "/proc/driver/nvidia/gpus"


def read_gpus(root: Root) -> Tree:
    """Return the `gpu` branch, or one leaf where NVML does not answer at all."""
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
    return _branch(Nvml(pynvml), root)


def _branch(nvml: Nvml, root: Root) -> Tree:
    count = nvml.ask("nvmlDeviceGetCount")
    return {
        "driver": nvml.ask("nvmlSystemGetDriverVersion"),
        "count": count,
        "devices": _devices(nvml, root, count["value"]) if "value" in count else count,
    }


def _devices(nvml: Nvml, root: Root, count: int) -> Tree:
    found: Tree = {}
    silent: list[tuple[int, Tree]] = []
    for index in range(count):
        try:
            handle: Any = nvml.call("nvmlDeviceGetHandleByIndex", index)
            address = pci_address(nvml.call("nvmlDeviceGetPciInfo", handle))
        except nvml.Error as error:
            silent.append((index, nvml.why(error)))
            continue
        try:
            found[address] = read_device(nvml, handle)
        except Lost as lost:
            found[address] = failed(str(lost))
    unanswered = [address for address in _listed(root) if address not in found]
    names = [*unanswered, *(f"index {index}" for index, _ in silent[len(unanswered) :])]
    found.update({name: reason for name, (_, reason) in zip(names, silent, strict=False)})
    return found or absent("NVML counts no GPU")


def pci_address(info: Any) -> str:
    """Return an nvmlPciInfo_t as Linux writes addresses, `0000:1b:00.0`."""
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"


def _listed(root: Root) -> list[str]:
    """Return the addresses of the GPUs that the kernel driver holds, lost ones too; none where it does not say."""
    try:
        return [name.lower() for name in root.names(DRIVER_LIST)]
    except OSError:
        return []
