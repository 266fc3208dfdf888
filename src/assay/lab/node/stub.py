"""The stub `libnvidia-ml.so.1`: built with the system's C compiler, once per lab and version of the source.

Its answers are a flat JSON file: `count`, `slots`, `driver` … and `g<slot>.<name>`, numbers in NVML's own units
(milliwatts). A missing GPU has no index and later GPUs move up, as in NVML: only the PCI address identifies a GPU's
place.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.lab.node.healthy_devices import HEALTHY_GPU, HGX_NVLINKS
from assay.lab.virtual_node_state import VirtualNodeState
from assay.ledger.file_locks import hold_file_lock

GPU_IS_LOST = 15  # NVML_ERROR_GPU_IS_LOST
MEMORY_ABOVE_GPU_C = 6
CUDA = {"570": 12080, "575": 12090, "580": 13000}  # CUDA toolkit release notes, table of drivers
COPIED_FIELDS = (
    *("name", "serial", "uuid", "board_part", "inforom_image", "inforom_oem", "inforom_ecc", "inforom_valid"),
    *("pcie_generation", "pcie_generation_max", "pcie_width", "pcie_width_max", "pcie_replays"),
    *("sm_mhz", "sm_max_mhz", "memory_mhz", "memory_max_mhz", "throttle"),
    *("application_mhz", "application_memory_mhz", "application_default_mhz"),
    *("temperature_c", "shutdown_c", "slowdown_c", "operating_max_c", "memory_max_c"),
    *("ecc_enabled", "ecc_pending", "sram_threshold_exceeded", "repair_channel", "repair_tpc"),
    *("nvlink_generation", "nvlink_speed_mb_s", "nvlink_up"),
    *("fabric_state", "fabric_status", "fabric_clique", "fabric_cluster", "fabric_health", "fabric_summary"),
    *("mig_enabled", "mig_pending", "persistence", "compute_mode", "gpu_percent", "memory_percent"),
    *("memory_total_bytes", "memory_used_bytes", "recovery_action"),
)

Flat = dict[str, int | str]
SOURCE = Path(__file__).with_name("stub.c")
SOURCES = sorted(SOURCE.parent.glob("*.[ch]"))
SONAME = "libnvidia-ml.so.1"
COMPILERS = ("cc", "gcc", "clang")
REPLAYED_NOTICE = "NVML: replayed, no C compiler found"
BUILD_DEADLINE_S = 60


def stub_answers(state: VirtualNodeState) -> Flat:
    """Return the stub's answers for a node in this state."""
    driver = state["driver"]
    present = [gpu for gpu in state["gpus"] if gpu["present"] and driver]
    flat: Flat = {"count": len(present), "slots": " ".join(str(gpu["index"]) for gpu in present), "driver": driver}
    if cuda := CUDA.get(driver.partition(".")[0]):
        flat |= {"cuda": cuda, "nvml": f"{cuda // 1000}.{driver}"}
    for gpu in present:
        vbios = state["firmware"].get(f"HGX_FW_GPU_SXM_{gpu['index'] + 1}", "")
        device = {"vbios": vbios, "gsp": driver, **_device({**HEALTHY_GPU, **gpu})}
        flat.update({f"g{gpu['index']}.{key}": answer for key, answer in device.items()})
    return flat


def _device(gpu: VirtualNodeState) -> Flat:
    copied = {key: gpu[key] for key in COPIED_FIELDS if key in gpu}
    return {
        "rc": GPU_IS_LOST if gpu["lost"] else 0,
        "pci": gpu["pci"].upper(),
        **{key: value if isinstance(value, str) else int(value) for key, value in copied.items()},
        "margin_c": int(gpu.get("margin_c", gpu["operating_max_c"] - gpu["temperature_c"])),
        "memory_temperature_c": int(gpu.get("memory_temperature_c", gpu["temperature_c"] + MEMORY_ABOVE_GPU_C)),
        **dict(_power(gpu)),
        **dict(_memory(gpu)),
        "nvlink_links": HGX_NVLINKS,
        **dict(_error_counts(gpu)),
        "pids": " ".join(map(str, gpu["pids"])),
        "xids": " ".join(map(str, gpu["xids"])),
    }


def _power(gpu: VirtualNodeState) -> Iterator[tuple[str, int]]:
    limit = gpu.get("power_limit_w", 700)
    usual = gpu.get("power_default_w", limit)
    watts = {"power": gpu["power_w"], "power_limit": limit, "power_requested": limit}
    for name, value in {**watts, "power_default": usual, "power_max": usual, "power_min": 200}.items():
        yield f"{name}_mw", int(value * 1000)


def _memory(gpu: VirtualNodeState) -> Iterator[tuple[str, int]]:
    """Yield memory errors in total, in SRAM and in DRAM."""
    for counter in ("volatile", "aggregate"):
        for kind in ("corrected", "uncorrected"):
            total = gpu[f"ecc_{counter}_{kind}"]
            sram = gpu[f"ecc_{counter}_sram_{kind}"]
            yield f"ecc_{counter}_{kind}", int(total + sram)
            yield f"ecc_{counter}_sram_{kind}", int(sram)
            yield f"ecc_{counter}_dram_{kind}", int(total)
    for key in ("remap_correctable", "remap_uncorrectable", "remap_pending", "remap_failed"):
        yield key, int(gpu[key])
    yield from ((f"remap_banks_{left}", banks) for left, banks in gpu["remap_banks"].items())


def _error_counts(gpu: VirtualNodeState) -> Iterator[tuple[str, Any]]:
    for reason, nanoseconds in gpu["throttled_ns"].items():
        yield f"throttled_{reason}_ns", int(nanoseconds)
    for link, errors in gpu["nvlink_errors"].items():
        yield from ((f"nvlink{link}_{error}", count) for error, count in errors.items())


def find_compiler() -> str | None:
    """Return the path of a C compiler, None if there is none."""
    return next((path for name in COMPILERS if (path := shutil.which(name))), None)


def build_stub(folder: Path) -> Path | None:
    """Return the stub library in `folder`, compiled if missing; None without a working compiler.

    Several processes may call it at once. Without the stub the lab replays NVML readings.
    """
    content = b"".join(source.read_bytes() for source in SOURCES)
    library = folder / hashlib.sha256(content).hexdigest()[:12] / SONAME
    if library.exists():
        return library
    compiler = find_compiler()
    if compiler is None:
        return None
    library.parent.mkdir(parents=True, exist_ok=True)
    with hold_file_lock(folder / "lock"):
        return library if library.exists() or _compile(compiler, library) else None


def _compile(compiler: str, library: Path) -> bool:
    scratch = library.with_name(f"{SONAME}.{os.getpid()}")
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", f"-Wl,-soname,{SONAME}"]
    command = [compiler, *flags, "-o", str(scratch), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, timeout=BUILD_DEADLINE_S, check=False)
    if done.returncode != 0 or not scratch.exists():
        return False
    scratch.replace(library)
    return True
