"""What a node has, by its spec and the inventory, and what checks, loads and burn-ins make of it."""

from __future__ import annotations

from typing import Any

import pytest

from assay.declare.loader import load_fleet
from assay.model.specs.burn_in import BurnIn
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.load_parts import LOAD_PARTS, PART_NEEDS, select_possible
from assay.model.specs.node.node_spec import NodeSpec
from tests.support.places import ROOT

SPECS = load_fleet(ROOT).node_specs


def check(**given: Any) -> CheckDeclaration:
    fields = {"id": "suites/a/test_b.py::test_c", "subject": "node", "phases": ["test"], **given}
    return CheckDeclaration.model_validate(fields)


def burn_in(*phases: dict[str, Any], **given: Any) -> BurnIn:
    return BurnIn.model_validate({"kind": "BurnIn", "name": "ours", "sources": ["us"], "phases": list(phases), **given})


def phase(name: str, *parts: str, **given: Any) -> dict[str, Any]:
    return {"name": name, "hours": 1, "parts": list(parts), **given}


def test_a_spec_that_gives_nothing_has_nothing() -> None:
    bare = NodeSpec(kind="NodeSpec", name="bare")
    assert bare.list_parts(False, False) == frozenset()
    assert bare.list_parts(True, True) == {"bmc", "fabric"}
    assert [bare.slot_names(kind) for kind in ("gpu", "hca", "nic", "nvme", "psu", "fan")] == [[]] * 6


def test_the_vendor_and_the_links_of_gpus_are_parts() -> None:
    assert {"gpus", "nvidia", "nvlink"} <= SPECS["hgx-h100"].list_parts(True, True)
    amd = SPECS["mi300x"].list_parts(True, False)
    assert {"gpus", "amd", "nvme", "nics", "psus", "fans", "node_power"} <= amd
    assert amd.isdisjoint({"nvidia", "nvlink", "driver", "firmware", "hcas", "fabric"})
    limits = {name: limit for name, limit in SPECS["hgx-h100"].limits.items() if name != "nvlink_links"}
    bridged = SPECS["hgx-h100"].model_copy(update={"limits": limits})
    assert SPECS["hgx-h100"].list_parts(True, True) - bridged.list_parts(True, True) == {"nvlink"}


def test_without_a_bmc_nothing_is_left_that_only_a_bmc_reads_or_brings() -> None:
    spec = SPECS["hgx-h100"].without_bmc()
    assert SPECS["hgx-h100"].list_parts(True, True) - spec.list_parts(False, True) == {
        "bmc",
        "bmc_network",
        "firmware",
        "fans",
        "psus",
    }
    assert (spec.bios, spec.boot.first, spec.bmc.power_restore) == ({}, None, None)
    assert spec.gpus == SPECS["hgx-h100"].gpus


@pytest.mark.parametrize(
    ("given", "parts", "lacking"),
    [
        ({}, set(), ""),
        ({"needs": ["bmc", "fans"]}, {"bmc"}, "fans"),
        ({"needs": ["bmc", "fans"]}, {"bmc", "fans"}, ""),
        ({"subject": "gpu"}, {"nvidia"}, "gpus"),
        ({"subject": "gpu", "needs": ["nvidia"]}, {"gpus", "amd"}, "nvidia"),
        ({"active": True, "parts": ["gpu_burn"]}, {"amd"}, "nvidia"),
        ({"active": True, "parts": ["gpu_burn", "memory"]}, {"amd"}, ""),
        ({"active": True, "parts": ["memory"]}, set(), ""),
    ],
)
def test_a_check_is_due_where_a_node_has_what_it_needs(given: dict[str, Any], parts: set[str], lacking: str) -> None:
    assert check(**given).find_lacking(parts) == lacking


def test_every_part_of_a_load_says_what_it_needs() -> None:
    assert set(PART_NEEDS) == set(LOAD_PARTS)
    assert select_possible(["gpu_burn", "memory", "nvme_read"], {"amd", "nvme"}) == ["memory", "nvme_read"]


def test_a_burn_in_does_what_the_node_has_parts_for() -> None:
    plan = burn_in(
        phase("first", "gpu_burn", "nvme_read"),
        phase("heat", "gpu_burn"),
        phase("drives", "nvme_read", beside=["memory"]),
        phase("again", "gpu_burn", beside=["memory"], compare_with="heat"),
    )
    fitting = plan.fit_to({"gpus", "amd", "nvme"})
    assert [(one.name, one.parts, one.beside) for one in fitting.phases] == [
        ("first", ["nvme_read"], []),
        ("drives", ["nvme_read"], ["memory"]),
        ("again", ["memory"], []),
    ]
    assert fitting.hours == 3
    assert fitting.phases[-1].compare_with is None, "the phase that it is compared with is gone"
    assert plan.fit_to({"gpus", "nvidia", "nvme"}) == plan


def test_a_burn_in_is_for_nodes_that_can_do_something_of_it() -> None:
    plan = burn_in(phase("heat", "gpu_burn"))
    assert plan.applies_to("h100", {"nvidia"})
    assert not plan.applies_to("mi300x", {"amd"})
    assert not burn_in(phase("memory", "memory"), needs=["nvidia"]).applies_to("mi300x", {"amd"})
    assert not burn_in(phase("memory", "memory"), node_specs=["h100"]).applies_to("mi300x", {"amd"})
