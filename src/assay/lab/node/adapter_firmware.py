"""The firmware settings of a virtual node's HCAs and NICs, as mstconfig prints them.

An adapter's `settings` are by name: `default`, `current` (in force) and `next_boot`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a node's shell starts often: it does without pydantic
    from assay.lab.virtual_node_state import VirtualNodeState
    from assay.model.specs.node.node_spec import NodeSpec

Adapter = dict[str, Any]
NUMBERS: Mapping[str, Mapping[str, int]] = {  # Mellanox/mstflint, mlxconfig_dbs/mlxconfig_host.db
    "LINK_TYPE_P1": {"IB": 1, "ETH": 2},
    "PCI_WR_ORDERING": {"per_mkey": 0, "force_relax": 1},
    "ROCE_CONTROL": {"DEVICE_DEFAULT": 0, "ROCE_DISABLE": 1, "ROCE_ENABLE": 2},
}
SWITCH = {"False": 0, "True": 1}
DEFAULTS = {"PCI_WR_ORDERING": "per_mkey", "ROCE_CONTROL": "ROCE_ENABLE", "ATS_ENABLED": "False", "NUM_OF_VFS": "16"}
HEADING = f"{'Configurations:':<16}{'Default':>43}{'Current':>17}{'Next Boot':>19}"
DEVICE = "\nDevice #1:\n----------\n\nDevice type:        ConnectX7\nDevice:             "


def print_firmware_value(name: str, text: str) -> str:
    """Return a value as mstconfig prints it, such as `ETH(2)`, from its name or its number."""
    for known, number in NUMBERS.get(name, {} if text.isdecimal() else SWITCH).items():
        if text.lower() in (known.lower(), str(number)):
            return f"{known}({number})"
    return text


def with_firmware_settings(adapters: list[Adapter], spec: NodeSpec, link_type: str) -> list[Adapter]:
    """Return the adapters with the settings of the spec, else the usual ones."""
    given = spec.hca_settings
    common = given.hcas if link_type == "IB" else given.nics
    return [
        {**each, "settings": _make_settings(link_type, {**common, **given.by_name.get(each["name"], {})})}
        for each in adapters
    ]


def _make_settings(link_type: str, declared: Mapping[str, Any]) -> dict[str, Adapter]:
    usual = {"LINK_TYPE_P1": link_type, **DEFAULTS}
    settings = {}
    for name, text in {**usual, **declared}.items():
        printed = print_firmware_value(name, str(text))
        default = print_firmware_value(name, usual.get(name, str(text)))
        settings[name] = {"default": default, "current": printed, "next_boot": printed}
    return settings


def adapter_after_boot(adapter: Mapping[str, Any]) -> Adapter:
    """Return the adapter after a boot: the pending settings are in force."""
    settings = adapter.get("settings", {})
    return {**adapter, "settings": {name: {**one, "current": one["next_boot"]} for name, one in settings.items()}}


def adapter_firmware_files(state: VirtualNodeState) -> Iterator[tuple[str, str]]:
    """Yield what `mstconfig -e query` prints of each adapter. An adapter without settings refuses to be asked."""
    for adapter in [*state["hcas"], *state["nics"]]:
        if settings := adapter.get("settings"):
            rows = "".join(_print_row(name, one) for name, one in settings.items())
            yield f"run/mstconfig/{adapter['pci']}", f"{DEVICE}{adapter['pci']}\n\n{HEADING}\n{rows}"


def _print_row(name: str, setting: Mapping[str, str]) -> str:
    cells = [setting["default"], setting["current"], setting["next_boot"]]
    mark = "*" if len(set(cells)) > 1 else ""
    return f"{mark:<8}{name:<44}{cells[0]:<20} {cells[1]:<20} {cells[2]:<20}\n"
