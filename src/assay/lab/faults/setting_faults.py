"""Settings of a node that somebody changed. A docstring is the line of `assay lab inject`."""

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from assay.lab.node.adapter_firmware import print_firmware_value
from assay.lab.node.healthy_devices import COMPUTE_MODES
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.errors import AssayError

GpuSettingName = Literal["persistence", "ecc", "mig", "compute_mode", "application_mhz", "power_limit_w"]


def gpu_setting(
    state: VirtualNodeState, now: datetime, gpu: int, name: GpuSettingName = "persistence", value: str = "off"
) -> None:
    """A GPU with another setting: a mode `on` or `off`, a compute mode by name, MHz or watts."""
    changed: dict[str, Any] = {name: value == "on"}
    if name in ("ecc", "mig"):
        changed = {f"{name}_enabled": value == "on", f"{name}_pending": value == "on"}
    elif name == "compute_mode":
        changed = {name: COMPUTE_MODES.index(value)}
    elif name != "persistence":
        changed = {name: int(value)}
    state["gpus"][gpu] |= changed


def hca_setting(
    state: VirtualNodeState, now: datetime, hca: str, name: str = "LINK_TYPE_P1", value: str = "ETH"
) -> None:
    """An HCA or NIC with another firmware setting."""
    adapter = next(each for each in (*state["hcas"], *state["nics"]) if each["name"] == hca)
    if name not in adapter["settings"]:
        known = ", ".join(adapter["settings"])
        raise AssayError(f"{hca} of {state['name']} has no firmware setting {name!r}", fix=f"use one of {known}")
    printed = print_firmware_value(name, value)
    adapter["settings"][name] |= {"current": printed, "next_boot": printed}


def file_changed(state: VirtualNodeState, now: datetime, path: str, content: str = "# changed by hand\n") -> None:
    """A file of the spec with another content."""
    state["host"]["files"][path] = content


def fabric_manager_old(state: VirtualNodeState, now: datetime, version: str = "570.133.20") -> None:
    """A fabric manager of another version than the driver."""
    state["host"]["fabric_manager"] = version


def module_option_changed(state: VirtualNodeState, now: datetime, module: str, option: str, value: str = "7") -> None:
    """A kernel module that was loaded with another option."""
    state["module_options"].setdefault(module, {})[option] = value


def hugepages_changed(state: VirtualNodeState, now: datetime, size: str = "1048576kB", count: int = 4) -> None:
    """A kernel that reserves another number of huge pages."""
    state["host"]["hugepages"][size] = count


def unit_setting_changed(state: VirtualNodeState, now: datetime, unit: str, name: str, value: str = "8388608") -> None:
    """A unit of systemd that has loaded another setting."""
    state["host"]["unit_settings"].setdefault(unit, {})[name] = value


def time_servers_changed(state: VirtualNodeState, now: datetime, server: str = "pool.example") -> None:
    """A chrony that uses another server."""
    state["host"]["clock"]["sources"] = [server]


SETTING_FAULTS: Mapping[str, Callable[..., None]] = {
    "fabric-manager.old": fabric_manager_old,
    "file.changed": file_changed,
    "gpu.setting": gpu_setting,
    "hugepages.changed": hugepages_changed,
    "module-option.changed": module_option_changed,
    "time-servers.changed": time_servers_changed,
    "unit-setting.changed": unit_setting_changed,
    "hca.setting": hca_setting,
}
