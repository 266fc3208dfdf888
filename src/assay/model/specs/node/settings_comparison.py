"""Compares the probe's readings with the settings of a node spec. What cannot be read is never as declared.

Compares NVML's readings with the GPU settings of a node spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from assay.model.specs.node.declared_settings import (
    SettingMismatch,
    find_setting,
    format_reading,
    list_adapters,
    list_hca_settings,
)
from assay.model.specs.node.host_settings import HostFile, list_option_names, list_setting_names
from assay.model.specs.node.node_spec import NodeSpec

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


PROBE_AREAS = ("host", "gpu", "kernel", "services", "files", "nic", "pci", "time", "unit_settings", "adapter_settings")
"""The areas of the probe that `find_host_mismatches` reads."""
IMAGE_SETTINGS = ("host.kernel", "kernel_cmdline", "host.iommu", "driver", "fabric_manager", "host.module_options")
"""The settings that a running host takes only with a restart, and a node whose root is in memory from its image."""
DEVICE_SETTINGS = ("gpu_settings.ecc", "gpu_settings.mig", "hca_settings")
"""The settings that a device takes only with a restart of the host, whatever the host boots."""


def make_probe_arguments(spec: NodeSpec) -> list[str]:
    """Return the arguments that let the probe read what only this spec names: files, and settings by name."""
    names = {
        "--files": list(spec.host.files),
        "--module-options": list_option_names(spec.host.module_options),
        "--adapters": [f"{place}={'+'.join(settings)}" for _, place, settings in list_adapters(spec)],
        "--unit-settings": list_setting_names(spec.host.unit_settings),
        "--tpm": ["owner"] if spec.tpm else [],
    }
    return [word for option, chosen in names.items() if chosen for word in (option, ",".join(chosen))]


def find_host_mismatches(spec: NodeSpec, tree: Any) -> list[SettingMismatch]:
    """Return every declared setting of the host that reads otherwise in `tree`, the probe's channel."""
    return [SettingMismatch(*compared) for compared in _list_settings(spec, tree) if compared[1] != compared[2]]


def needs_restart(mismatches: Iterable[SettingMismatch], root: Literal["disk", "memory"]) -> bool:
    """Say whether a mismatch may end with a restart of the host. A setting that nobody could read is no reason."""
    for mismatch in mismatches:
        setting = find_setting(mismatch.name)
        is_of_image = root == "disk" and setting in IMAGE_SETTINGS
        may_end = not mismatch.is_unread if setting in DEVICE_SETTINGS else is_of_image
        if may_end and not is_unknown(mismatch):
            return True
    return False


def needs_image(mismatches: Iterable[SettingMismatch]) -> bool:
    """Say whether a mismatch ends only with another image, where the root is in memory."""
    return any(find_setting(mismatch.name) in IMAGE_SETTINGS and not is_unknown(mismatch) for mismatch in mismatches)


def is_unknown(mismatch: SettingMismatch) -> bool:
    """Say whether the setting could not be read, so that nobody knows whether it differs."""
    return mismatch.seen.startswith("(failed") or mismatch.seen.startswith("(unsupported")


def _list_settings(spec: NodeSpec, tree: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (name, wanted, seen) of every declared setting."""
    yield from _list_restart_settings(spec, tree)
    yield from _list_kernel_settings(spec, tree)
    yield from list_gpu_settings(spec, tree)
    yield from list_hca_settings(spec, tree)
    for path, file in spec.host.files.items():
        yield f"host.files.{path}", *_compare_file(file, tree, path)
    if spec.host.time_servers:
        yield "host.time_servers", *_compare_words(spec.host.time_servers, format_reading(tree, "time", "sources"))
    yield from _list_unit_settings(spec, tree)
    for name in spec.host.services:
        yield f"host.services.{name}", "active", format_reading(tree, "services", "units", name)
    for nic in spec.nics:
        if nic.mtu:
            yield f"nics.{nic.name}.mtu", str(nic.mtu), format_reading(tree, "nic", nic.name, "mtu_bytes")


def _list_unit_settings(spec: NodeSpec, tree: Any) -> Iterator[tuple[str, str, str]]:
    for unit, settings in spec.host.unit_settings.items():
        for name, wanted in settings.items():
            seen = format_reading(tree, "unit_settings", unit, name)
            yield f"host.unit_settings.{unit}.{name}", wanted, seen


def _list_restart_settings(spec: NodeSpec, tree: Any) -> Iterator[tuple[str, str, str]]:
    host = spec.host
    if host.kernel:
        yield "host.kernel", host.kernel, format_reading(tree, "host", "kernel")
    if spec.kernel_cmdline:
        yield "kernel_cmdline", *_compare_words(spec.kernel_cmdline, format_reading(tree, "host", "cmdline"))
    if spec.driver:
        yield "driver", spec.driver, format_reading(tree, "kernel", "versions", "nvidia")
    if spec.fabric_manager:
        yield "fabric_manager", spec.fabric_manager, format_reading(tree, "kernel", "versions", "fabric_manager")
    for module, options in host.module_options.items():
        for name, wanted in options.items():
            seen = format_reading(tree, "kernel", "module_options", module, name)
            yield f"host.module_options.{module}.{name}", wanted, seen
    if host.iommu and spec.gpus.count:
        read = {format_reading(tree, "pci", address, "iommu") for address in spec.gpus.pci}
        # a GPU that fell off the bus says nothing
        known = {text for text in read if text != "absent" and not text.startswith("(absent")}
        yield "host.iommu", host.iommu, " and ".join(sorted(known)) or "(failed: no GPU is on the bus)"


def _list_kernel_settings(spec: NodeSpec, tree: Any) -> Iterator[tuple[str, str, str]]:
    host = spec.host
    if host.governor:
        yield "host.governor", host.governor, format_reading(tree, "host", "cpu", "governors")
    if host.transparent_hugepages:
        seen = format_reading(tree, "kernel", "transparent_hugepages")
        yield "host.transparent_hugepages", host.transparent_hugepages, seen
    if host.modules:
        yield "host.modules", *_compare_words(host.modules, format_reading(tree, "kernel", "modules"))
    for size, count in host.hugepages.items():
        yield f"host.hugepages.{size}", str(count), format_reading(tree, "kernel", "hugepages", size, "total")
    for name, wanted in host.sysctls.items():
        yield f"host.sysctls.{name}", " ".join(wanted.split()), format_reading(tree, "kernel", "sysctl", name)


def _compare_words(wanted: list[str], seen: str) -> tuple[str, str]:
    """Return the wanted words that are missing and what was seen of them. A reading without a value stays as it is."""
    if seen.startswith("(") or seen == "absent":
        return " ".join(wanted), seen
    missing = [word for word in wanted if word not in seen.split()]
    return " ".join(missing), "absent" if missing else ""


def _compare_file(file: HostFile, tree: Any, path: str) -> tuple[str, str]:
    """Return what differs of a file: its content or, where that is right, its permissions."""
    content = format_reading(tree, "files", path, "sha256")
    if content != file.sha256:
        seen = content if content.startswith(("(", "absent")) else f"sha256 {content[:12]}"
        return f"sha256 {file.sha256[:12]}", seen
    return f"mode {file.mode}", f"mode {format_reading(tree, 'files', path, 'mode')}"
