"""The stages of the shipped bundles, and what a task of Ansible returns of them."""

from __future__ import annotations

from functools import cache

import pytest

from assay.act.remedies.firmware_stages import list_managed_components, list_stages, select_stages
from assay.act.remedies.firmware_update import NOTHING, StageResult, report_planned, report_stages
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from tests.support.places import ROOT

STAGES = {
    "hgx-h100-2026-10": ["bmc/bmc", "hmc/bmc", "bios/host", "gpu, nvswitch, retimer/ac", "hca/host"],
    "hgx-h200-2026-10": ["bmc/bmc", "hmc/bmc", "bios/host", "gpu, nvswitch, retimer/ac", "hca/host"],
    "hgx-b200-2026-10": ["bmc/bmc", "hmc/bmc", "bios/host", "gpu, nvswitch/ac", "hca/host"],
    "gb200-nvl72-1.3": ["bmc/bmc", "hmc, bios, gpu, fpga, cpld/ac", "hca/host"],
    "gb300-nvl72": ["bios, gpu/ac", "hca/host"],
}


@cache
def fleet() -> Fleet:
    return load_fleet(ROOT)


def test_every_shipped_bundle_has_its_stages() -> None:
    found = {
        name: [f"{stage.name}/{stage.reset}" for stage in list_stages(bundle.components)]
        for name, bundle in fleet().bundles.items()
    }
    assert found == STAGES


def test_a_task_without_components_brings_all_that_the_profile_leaves_to_us() -> None:
    assert [stage.name for stage in select_stages(fleet(), "n0003", None)][-1] == "hca"
    assert [stage.name for stage in select_stages(fleet(), "n0017", None)][-1] == "gpu, nvswitch, retimer"


def test_a_task_that_lists_components_is_one_stage_with_one_reset() -> None:
    (stage,) = select_stages(fleet(), "n0003", ["retimer", "bios"])
    assert (stage.name, stage.reset) == ("bios, retimer", "ac")
    assert select_stages(fleet(), "n0017", ["hca"]) == []


def test_a_name_that_the_bundle_lacks_is_refused() -> None:
    with pytest.raises(AssayError, match="the bundle hgx-h100-2026-10 has no cpld, fpga"):
        select_stages(fleet(), "n0003", ["fpga", "bios", "cpld"])


def test_check_mode_says_which_stages_would_change_and_how() -> None:
    stages = select_stages(fleet(), "n0003", None)
    parts = list_managed_components(fleet(), "n0003")
    seen = {ident: part.version for part in parts for ident in part.inventory} | {"BIOS": "2.0.0"}
    told = report_planned(stages, seen)
    assert (told["changed"], told["pushed"], told["msg"]) == (True, [], "bios would change (reset: host)")
    assert [(stage["name"], stage["changed"]) for stage in told["stages"]][1:4] == [
        ("hmc", False),
        ("bios", True),
        ("gpu, nvswitch, retimer", False),
    ]
    (diff,) = told["diff"]
    assert (diff["before"], diff["after"]) == ("BIOS: 2.0.0\n", "BIOS: 2.7.3\n")
    assert not report_planned(stages, seen | {"BIOS": "2.7.3"})["changed"]
    assert report_planned([], {}) | {"msg": ""} == report_stages([]) | {"msg": ""}
    assert report_planned([], {})["msg"] == NOTHING


def test_a_run_says_what_it_pushed_why_and_what_it_reset() -> None:
    done = [
        StageResult("bmc", False, {"BMC": "1"}, {"BMC": "1"}, {}, []),
        StageResult("bios", True, {"BIOS": "1"}, {"BIOS": "2"}, {"bios": "BIOS is 1, expected 2"}, ["host", "host"]),
        StageResult("hca", True, {"HCA_0": "1"}, {"HCA_0": "2"}, {}, ["host"]),
    ]
    told = report_stages(done)
    assert told["msg"] == "bios: pushed bios, resets: host, host; hca: took over what was written, resets: host"
    assert (told["pushed"], told["firmware"]) == (["bios"], {"BMC": "1", "BIOS": "2", "HCA_0": "2"})
    assert told["stages"][1]["pushed"] == {"bios": "BIOS is 1, expected 2"}
    assert [part["after"] for part in told["diff"]] == ["BIOS: 2\n", "HCA_0: 2\n"]
