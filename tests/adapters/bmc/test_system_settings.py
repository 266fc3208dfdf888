"""BIOS and boot settings are ordered only where they differ, on the BMC of the lab. A reset applies them."""

from __future__ import annotations

from typing import Any

import pytest

from assay.act.remedies.settings import SystemSettingsUpdate
from assay.adapters.bmc.client import BmcClient
from assay.adapters.bmc.settings import (
    compare_bios,
    compare_boot,
    find_system_mismatches,
    needs_reset,
    order_system_settings,
)
from assay.model.errors import AssayError
from assay.model.specs.node.declared_settings import format_setting_mismatches
from assay.model.specs.node.node_spec import BootSpec, NodeSpec

NODE = "n0003"


def declared(rehearsal: Any, **more: Any) -> NodeSpec:
    return rehearsal.fleet.spec_of(NODE).model_copy(update=more)


def spoil(rehearsal: Any, **box: Any) -> None:
    with rehearsal.world.change(NODE) as state:
        state["box"]["bios"] |= box.pop("bios", {})
        state["box"] |= box


def test_a_node_as_declared_differs_in_nothing(bmc: BmcClient, rehearsal: Any) -> None:
    assert find_system_mismatches(bmc, declared(rehearsal)) == []


def test_all_orders_wait_for_one_reset_and_only_what_differs_is_ordered(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, bios={"ACSControl": "Enabled", "SRIOVSupport": "Disabled"}, boot_order=[1, 0], boot_mode="Legacy")
    spoil(rehearsal, secure_boot=True)
    spec = declared(rehearsal)
    mismatches = find_system_mismatches(bmc, spec)
    assert [one.name for one in mismatches] == [
        "bios.SRIOVSupport",
        "bios.ACSControl",
        "boot.mode",
        "boot.secure",
        "boot.first",
    ]
    assert "bios.ACSControl is Enabled, expected Disabled" in format_setting_mismatches(mismatches)

    order_system_settings(bmc, spec, mismatches)

    box = rehearsal.world.load(NODE)["box"]
    assert box["bios_pending"] == {"ACSControl": "Disabled", "SRIOVSupport": "Enabled"}
    assert box["boot_pending"] == {"boot_order": [0, 1], "boot_mode": "UEFI", "secure_boot": False}
    assert find_system_mismatches(bmc, spec) == mismatches, "an order is not yet the setting"
    bmc.reset_system("ForceRestart")
    assert find_system_mismatches(bmc, spec) == []


def test_what_somebody_else_ordered_is_corrected_without_a_reset(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, bios_pending={"ACSControl": "Enabled"})
    spec = declared(rehearsal)
    mismatches = find_system_mismatches(bmc, spec)
    assert [one.name for one in mismatches] == ["bios_pending.ACSControl"]
    assert not needs_reset(mismatches)
    order_system_settings(bmc, spec, mismatches)
    assert rehearsal.world.load(NODE)["box"]["bios_pending"] == {}


def test_attributes_that_the_bmc_lacks_are_named_before_anything_is_ordered(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, bios={"ACSControl": "Enabled"})
    spec = declared(rehearsal, bios={"ACSControl": "Disabled", "Warp": "On", "Cloak": "On"})
    with pytest.raises(AssayError, match="the BIOS has no attributes Warp, Cloak") as trouble:
        order_system_settings(bmc, spec, find_system_mismatches(bmc, spec))
    assert "hgx-h100" in trouble.value.fix
    assert rehearsal.world.load(NODE)["box"]["bios_pending"] == {}


def test_a_boot_option_that_is_not_there_is_an_error_that_lists_the_others(bmc: BmcClient, rehearsal: Any) -> None:
    spec = declared(rehearsal, boot=BootSpec(first="USB*"))
    with pytest.raises(AssayError, match="the BMC has UEFI: PXE IPv4 Slot 1, ubuntu"):
        order_system_settings(bmc, spec, find_system_mismatches(bmc, spec))


def test_one_reset_brings_all_and_a_second_run_changes_nothing(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, bios={"ACSControl": "Enabled"}, boot_order=[1, 0])
    boots = rehearsal.world.load(NODE)["boot"]["count"]
    work = SystemSettingsUpdate(rehearsal.fleet, rehearsal.fleet.nodes[NODE], deadline_s=30.0)
    assert {one.name for one in work.apply()} == {"bios.ACSControl", "boot.first"}
    assert work.find_mismatches() == []
    assert work.apply() == []
    assert rehearsal.world.load(NODE)["boot"]["count"] == boots + 1


def test_a_bmc_that_never_applies_its_orders_is_an_error_with_both_values(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, secure_boot=True)
    with rehearsal.world.change(NODE) as state:
        state["fails"]["settings"] = True
    work = SystemSettingsUpdate(rehearsal.fleet, rehearsal.fleet.nodes[NODE], deadline_s=30.0, read_back_s=0.0)
    with pytest.raises(AssayError, match=r"after the reset: boot\.secure is true, expected false"):
        work.apply()


@pytest.mark.parametrize(
    ("wanted", "seen", "names"),
    [
        ({"A": "On"}, {"A": {"value": "On"}}, []),
        ({"A": "8"}, {"A": {"value": 8}}, []),
        ({"A": "True"}, {"A": {"value": True}}, []),
        ({"A": "On"}, {"A": {"value": "Off"}}, ["Off"]),
        ({"A": "On"}, {"A": {"failed": "null"}}, ["(failed: null)"]),
        ({"A": "On"}, {}, ["absent"]),
        ({"A": "On"}, {"failed": "no answer"}, ["(failed: no answer)"]),
        ({}, {"failed": "no answer"}, []),
    ],
)
def test_an_attribute_that_is_unknown_is_never_as_wanted(wanted: Any, seen: Any, names: list[str]) -> None:
    assert [one.seen for one in compare_bios(wanted, seen)] == names


@pytest.mark.parametrize(
    ("wanted", "seen", "names"),
    [
        ({}, {"failed": "no answer"}, []),
        ({"mode": "UEFI"}, {"mode": {"value": "UEFI"}}, []),
        ({"mode": "UEFI"}, {"mode": {"unsupported": "none"}}, ["(unsupported: none)"]),
        ({"secure": False}, {"secure": {"value": True}}, ["true"]),
        ({"secure": False}, {"failed": "no answer"}, ["(failed: no answer)"]),
        ({"first": "PXE*"}, {"order": {"value": ["PXE 1", "disk"]}}, []),
        ({"first": "PXE*"}, {"order": {"value": ["disk", "PXE 1"]}}, ["disk"]),
        ({"first": "PXE*"}, {"order": {"value": []}}, ["(failed: the boot order is empty)"]),
        ({"first": "PXE*"}, {"order": {"failed": "null"}}, ["(failed: null)"]),
        ({"first": "PXE*"}, {"failed": "no answer"}, ["(failed: no answer)"]),
    ],
)
def test_only_declared_boot_settings_are_compared(wanted: Any, seen: Any, names: list[str]) -> None:
    assert [one.seen for one in compare_boot(BootSpec(**wanted), seen)] == names
