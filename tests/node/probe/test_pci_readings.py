"""PCI devices: links as sysfs tells of them, access controls as a bridge's own configuration space does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.lab.node.device_files import DOWNSTREAM, ROOT_PORT, bridge_config_space
from assay.model.reading import parse_reading
from assay.node.probe.devices.pci import (
    ConfigTooShort,
    _bridge,
    parse_link_generation,
    parse_link_width,
    parse_pci_slot,
    read_bridge,
    read_pci,
)
from assay.node.probe.node_access import NodeRoot, convert_leaf, resolve_lazy

DEVICES = "sys/bus/pci/devices"
REDIRECTS = 0b11101


def tree(folder: Path, files: dict[str, bytes | str]) -> NodeRoot:
    for name, content in files.items():
        path = folder / DEVICES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return NodeRoot(str(folder))


GPU: dict[str, bytes | str] = {
    "0000:1B:00.0/class": "0x030200\n",
    "0000:1B:00.0/current_link_width": "8\n",
    "0000:1B:00.0/current_link_speed": "32.0 GT/s PCIe\n",
    "0000:1B:00.0/max_link_width": "16\n",
    "0000:1B:00.0/max_link_speed": "32.0 GT/s PCIe\n",
    "0000:1B:00.0/numa_node": "1\n",
    "0000:1B:00.0/iommu_group/type": "identity\n",
}


def test_a_device_has_its_link_its_place_and_its_iommu_domain(tmp_path: Path) -> None:
    assert resolve_lazy(read_pci(tree(tmp_path, GPU))) == {
        "0000:1b:00.0": {
            "kind": {"value": "gpu"},
            "link": {
                "width": {"value": 8},
                "generation": {"value": 5},
                "max_width": {"value": 16},
                "max_generation": {"value": 5},
            },
            "numa_node": {"value": 1},
            "iommu": {"value": "identity"},
        }
    }


def test_only_the_bridges_that_lead_somewhere_are_told_of(tmp_path: Path) -> None:
    files = {
        **GPU,
        "0000:17:01.0/class": "0x060400\n",
        "0000:17:01.0/config": bridge_config_space(DOWNSTREAM, 0x1B, 0x1B, REDIRECTS),
        "0000:00:1c.0/class": "0x060400\n",
        "0000:00:1c.0/config": bridge_config_space(ROOT_PORT, 0x02, 0x03, 0),
        "0001:17:01.0/class": "0x060400\n",
        "0001:17:01.0/config": bridge_config_space(DOWNSTREAM, 0x1B, 0x1B, 0),
        "0000:00:00.0/class": "0x060000\n",
    }
    found = resolve_lazy(read_pci(tree(tmp_path, files)))
    assert sorted(found) == ["0000:17:01.0", "0000:1b:00.0"]
    assert found["0000:17:01.0"] == {
        "kind": {"value": "switch downstream"},
        "buses": {"value": [0x1B, 0x1B]},
        "acs": {"value": ["source_validation", "request_redirect", "completion_redirect", "upstream_forwarding"]},
    }


def test_what_only_root_is_given_failed_and_says_so(tmp_path: Path) -> None:
    root = tree(tmp_path, {"0000:17:01.0/config": bridge_config_space(DOWNSTREAM, 0x1B, 0x1B, 0)[:64]})
    bridge = read_bridge(root, f"/{DEVICES}/0000:17:01.0")
    assert bridge["buses"] == {"value": [0x1B, 0x1B]}
    assert "only root" in bridge["kind"]["failed"]
    assert "only root" in bridge["acs"]["failed"]


def test_a_port_without_access_controls_has_none_that_is_on(tmp_path: Path) -> None:
    without = bridge_config_space(DOWNSTREAM, 0x1B, 0x1B, 0)[:0x100] + b"\0" * 16
    root = tree(tmp_path, {"0000:17:01.0/config": without})
    assert read_bridge(root, f"/{DEVICES}/0000:17:01.0")["acs"] == {"value": []}


@given(st.binary(max_size=600))
def test_no_configuration_space_whatever_raises_or_goes_round(content: bytes) -> None:
    def word(offset: int, size: int) -> int:
        part = content[offset : offset + size]
        if len(part) < size:
            raise ConfigTooShort
        return int.from_bytes(part, "little")

    assert all(parse_reading(leaf) for leaf in _bridge("config", word).values())


def test_a_device_that_the_firmware_gave_no_place_has_none(tmp_path: Path) -> None:
    found = resolve_lazy(read_pci(tree(tmp_path, {**GPU, "0000:1B:00.0/numa_node": "-1\n"})))
    assert "absent" in found["0000:1b:00.0"]["numa_node"]


def test_a_device_behind_no_iommu_is_known_to_be_behind_none(tmp_path: Path) -> None:
    without = {name: said for name, said in GPU.items() if "iommu" not in name}
    assert resolve_lazy(read_pci(tree(tmp_path, without)))["0000:1b:00.0"]["iommu"] == {"value": "none"}


def test_spellings_of_links() -> None:
    assert (
        parse_link_generation("2.5 GT/s PCIe"),
        parse_link_generation("16 GT/s"),
        parse_link_generation("64.0 GT/s PCIe"),
    ) == (1, 4, 6)
    assert parse_link_width("16") == 16
    for none in ("0", "255"):
        with pytest.raises(ValueError, match=none):
            parse_link_width(none)


def test_the_address_of_an_adapter_is_in_its_uevent() -> None:
    assert parse_pci_slot("DRIVER=mlx5_core\nPCI_CLASS=20700\nPCI_SLOT_NAME=0010:0F:00.0\n") == "0010:0f:00.0"


@pytest.mark.parametrize("convert", [parse_link_generation, parse_link_width, parse_pci_slot])
@given(text=st.text())
def test_no_content_raises(convert: Any, text: str) -> None:
    assert list(convert_leaf("/some/file", text, convert)) in (["value"], ["failed"])
