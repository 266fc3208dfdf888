"""Compares NVML's readings with the GPU settings of a node spec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.node.setting_mismatch import format_reading

NO_GPU = "(failed: no GPU is on the bus)"


def list_gpu_settings(spec: NodeSpec, tree: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (name, wanted, seen) of every declared setting of the GPUs."""
    settings = spec.gpu_settings
    for name, path in (("persistence", ("persistence",)), ("ecc", ("ecc", "enabled")), ("mig", ("mig", "enabled"))):
        if (wanted := getattr(settings, name)) is not None:
            yield f"gpu_settings.{name}", str(wanted).lower(), _read_of_all(spec, tree, *path)
    if settings.compute_mode:
        yield "gpu_settings.compute_mode", settings.compute_mode, _read_of_all(spec, tree, "compute_mode")
    if clocks := settings.application_clocks:
        wanted = f"{clocks.memory_mhz} and {clocks.graphics_mhz} MHz"
        memory = _read_of_all(spec, tree, "clocks", "application_memory_mhz")
        graphics = _read_of_all(spec, tree, "clocks", "application_mhz")
        seen = memory if memory.startswith("(") else f"{memory} and {graphics} MHz"
        yield "gpu_settings.application_clocks", wanted, seen
    if settings.power_limit_w:
        seen = _read_of_all(spec, tree, "power", "requested_w").removesuffix(".0")
        yield "gpu_settings.power_limit_w", str(settings.power_limit_w), seen


def _read_of_all(spec: NodeSpec, tree: Any, *path: str) -> str:
    """Return what the GPUs on the bus read, each value once. A GPU that is missing is the matter of other checks."""
    here = [pci for pci in spec.gpus.pci if format_reading(tree, "gpu", "devices", pci) != "absent"]
    seen = {format_reading(tree, "gpu", "devices", pci, *path) for pci in here}
    return " and ".join(sorted(seen)) or NO_GPU
