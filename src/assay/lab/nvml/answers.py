"""What the stub `libnvidia-ml.so.1` answers: a flat JSON file, keys `count`, `driver` and `g<index>.<what>`.

Numbers are in NVML's own units (milliwatts). A GPU that is not there has no index; those after it move up, as
they do in NVML, so only the PCI address names a GPU's place.
"""

from __future__ import annotations

from assay.lab.parts import HGX_NVLINKS
from assay.lab.world import State

GPU_IS_LOST = 15  # NVML_ERROR_GPU_IS_LOST
MEMORY_ABOVE_GPU_C = 6


def answers(state: State) -> dict[str, int | str]:
    """Return the stub's answers for the node as it is."""
    present = [gpu for gpu in state["gpus"] if gpu["present"]]
    flat: dict[str, int | str] = {"driver": state["driver"], "count": len(present)}
    for index, gpu in enumerate(present):
        vbios = state["firmware"].get(f"HGX_FW_GPU_SXM_{gpu['index'] + 1}", "")
        flat.update({f"g{index}.{key}": answer for key, answer in _device(gpu, vbios).items()})
    return flat


def _device(gpu: State, vbios: str) -> dict[str, int | str]:
    ecc = {key: int(gpu[key]) for key in gpu if key.startswith(("ecc_", "remap_"))}
    return {
        "rc": GPU_IS_LOST if gpu["lost"] else 0,
        "pci": gpu["pci"].upper(),
        "name": gpu["name"],
        "serial": gpu["serial"],
        "uuid": gpu["uuid"],
        "vbios": vbios,
        "pcie_generation": int(gpu["pcie_generation"]),
        "pcie_width": int(gpu["pcie_width"]),
        "pcie_replays": int(gpu["pcie_replays"]),
        "temperature_c": int(gpu["temperature_c"]),
        "memory_temperature_c": int(gpu.get("memory_temperature_c", gpu["temperature_c"] + MEMORY_ABOVE_GPU_C)),
        "power_mw": int(gpu["power_w"] * 1000),
        "power_limit_mw": int(gpu.get("power_limit_w", 700) * 1000),
        "throttle": int(gpu["throttle"]),
        "ecc_enabled": int(gpu.get("ecc_enabled", True)),
        "nvlink_links": HGX_NVLINKS,
        "nvlink_up": int(gpu["nvlink_up"]),
        "persistence": int(gpu.get("persistence", True)),
        **ecc,
    }
