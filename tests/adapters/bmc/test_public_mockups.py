"""Public recordings of real BMCs read as what they are: each quirk that small servers imitate elsewhere was seen here.

$ASSAY_SAMPLES/redfish/mockups is the folder `mockups` of Cray-HPE/csm-redfish-interface-emulator; DMTF's
public-rackmount1 is in it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from assay.adapters.bmc.client import open_bmc
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.observe.evidence_collector import read_bmc_channel
from tests.support.places import ROOT

MOCKUPS = Path(os.environ.get("ASSAY_SAMPLES", "no samples")) / "redfish/mockups"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MOCKUPS.is_dir(), reason="ASSAY_SAMPLES names no folder with redfish/mockups"),
]
QUIRKS = BmcQuirkSet(load_fleet(ROOT).quirks.values())


class AnyCase(dict[str, Any]):
    """Resources by path, in any case: an iLO's links differ from its paths in that."""

    def __init__(self, resources: dict[str, Any]) -> None:
        super().__init__({path.lower(): resource for path, resource in resources.items()})

    def __contains__(self, path: object) -> bool:
        return super().__contains__(str(path).lower())

    def __getitem__(self, path: str) -> Any:
        return super().__getitem__(path.lower())


def serve(tiny: Any, name: str) -> None:
    """Let the small BMC show a mockup."""
    files = list((MOCKUPS / name).rglob("index.json"))
    paths = ["/redfish/v1/" + file.parent.relative_to(MOCKUPS / name).as_posix() for file in files]
    tiny.tree = AnyCase({path.removesuffix("/."): _load(file) for path, file in zip(paths, files, strict=True)})


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except ValueError:
        return {}


def read(tiny: Any, ca_file: Path, name: str, system: str = "") -> dict[str, Any]:
    serve(tiny, name)
    return read_bmc_channel(tiny.node(bmc_ca=str(ca_file), bmc_system=system), Path(), 60, quirks=QUIRKS)


@pytest.mark.parametrize(
    ("name", "system", "temperatures", "voltages", "fans"),
    [
        ("EX425", "Node0", 21, 35, 0),
        ("EX425", "Node1", 21, 35, 0),
        ("EX235a", "", 38, 37, 0),
        ("Gigabyte", "", 17, 28, 0),
        ("Intel", "", 26, 2, 6),
        ("XL675d_A100", "", 53, 0, 15),
        ("DL325", "", 27, 0, 8),
        ("public-rackmount1", "", 2, 2, 2),
        ("OpenBMC-stock", "", 0, 0, 0),
    ],
)
def test_everything_that_a_bmc_measures_is_read(
    tiny: Any, ca_file: Path, name: str, system: str, temperatures: int, voltages: int, fans: int
) -> None:
    tree = read(tiny, ca_file, name, system)
    assert "value" in tree["system"]["power"]
    assert len(tree["sensor"]["temperature"]) == temperatures
    assert len(tree["sensor"]["voltage"]) == voltages
    assert len([fan for fan in tree["fan"] if fan.isdecimal()]) == fans


@pytest.mark.parametrize("name", ["EX425", "EX4252", "EX235n", "EX420"])
def test_no_node_of_a_blade_is_guessed(tiny: Any, ca_file: Path, name: str) -> None:
    assert "which is the node's is unknown" in read(tiny, ca_file, name)["system"]["failed"]
    with open_bmc(tiny.node(bmc_ca=str(ca_file))) as bmc, pytest.raises(AssayError, match="is unknown"):
        bmc.reset_system("On")
    assert [path for path in tiny.asked if path.startswith(("POST", "PATCH")) and "Sessions" not in path] == []


@pytest.mark.parametrize("name", ["DL325", "XL675d_A100", "XL675d_A40"])
def test_an_ilos_fans_are_in_percent(tiny: Any, ca_file: Path, name: str) -> None:
    fans = [fan for fan in read(tiny, ca_file, name)["fan"].values() if "rpm" in fan]
    assert fans
    assert all("in Percent, not in rpm" in fan["rpm"]["unsupported"] for fan in fans)


@pytest.mark.parametrize(
    ("name", "mixed"),
    [
        ("DL325", []),
        ("XL675d_A40", ["NVIDIA A40"]),
        ("XL675d_A100", ["Power Supply Firmware"]),
        ("EX425", []),
        ("EX4252", []),
    ],
)
def test_parts_that_run_two_versions_are_of_one_kind(tiny: Any, ca_file: Path, name: str, mixed: list[str]) -> None:
    tree = read(tiny, ca_file, name, "Node0" if name.startswith("EX") else "")
    kinds: dict[str, set[str]] = {}
    for part, version in tree["firmware"].items():
        kinds.setdefault(tree["firmware_kind"][part]["value"], set()).add(str(version))
    assert sorted(kind for kind, versions in kinds.items() if len(versions) > 1) == mixed
