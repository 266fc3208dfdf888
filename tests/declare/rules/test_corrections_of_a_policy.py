"""A policy corrects only settings that exist, and never more than a setting allows; its rules fit nodes in service."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node.declared_settings import SETTING_ROLES, CorrectionRules, find_setting, needs_idle_node
from tests.support.places import ROOT

POLICY = yaml.safe_load((ROOT / "specs/lifecycle/default.yaml").read_text())
RULE = {"states": ["production"], "timing": "immediate", "remedy": "configure"}


def list_conflicts(corrections: dict[str, Any], rule: dict[str, Any] | None = None) -> list[str]:
    """Return what is wrong with these corrections, and with this rule."""
    faults = {"ours": RULE | (rule or {}), **POLICY["faults"]}
    try:
        LifecyclePolicy.model_validate(POLICY | {"corrections": corrections, "faults": faults})
    except ValidationError as error:
        conflict = error.errors()[0]["ctx"]["error"]
        return [f"{'.'.join(map(str, one.path))}: {one.message}" for one in conflict.conflicts]
    return []


@pytest.mark.parametrize(
    ("listed", "where", "what"),
    [
        ({"at_once": ["host.sysctl"]}, "corrections.at_once.0", "is no setting of a node spec"),
        ({"at_once": ["host.governor", "bios"]}, "corrections.at_once.1", "so only zap brings it"),
        ({"idle": ["driver"]}, "corrections.idle.0", "so only zap brings it"),
        ({"at_once": ["host.modules"]}, "corrections.at_once.0", "may disturb a running job"),
        ({"at_once": ["host.governor"], "idle": ["host.governor"]}, "corrections.idle.0", "in corrections.at_once too"),
    ],
)
def test_no_setting_is_brought_in_service_that_does_not_allow_it(listed: dict[str, Any], where: str, what: str):
    (found,) = list_conflicts(listed)
    assert found.startswith(f"{where}: ")
    assert what in found


@pytest.mark.parametrize(
    "rule",
    [
        {"timing": "record"},
        {"to": "draining"},
        {"timing": "pending", "while_pending": ["cordon"]},
        {"states": []},
        {"states": ["production", "test"]},
    ],
)
def test_a_rule_that_corrects_is_for_nodes_in_service_and_moves_none(rule: dict[str, Any]):
    (found,) = list_conflicts({}, rule)
    assert found.startswith("faults.ours.remedy: ")


def test_what_a_setting_allows_may_be_declared():
    may = {name: [path for path, role in SETTING_ROLES.items() if role.applied == name] for name in ("at_once", "idle")}
    assert list_conflicts(may) == []
    assert CorrectionRules(**may).find_application("bios") == "zap"


def test_every_entry_of_a_setting_belongs_to_the_setting():
    assert all(find_setting(path) == path for path in SETTING_ROLES)
    assert find_setting("host.sysctls.vm.swappiness") == "host.sysctls"
    assert find_setting("nics.eth0.mtu") == "nics.mtu"
    assert find_setting("gpus.pci") == ""


def test_single_entries_need_an_idle_node():
    assert not needs_idle_node("host.sysctls", "vm.swappiness 60, expected 10")
    assert needs_idle_node("host.sysctls", "vm.nr_hugepages 512, expected 0")
    assert needs_idle_node("host.services", "nvidia-fabricmanager is inactive")
    assert needs_idle_node("nics.mtu", "mtu 1500")


def test_each_role_of_the_playbook_can_be_run_alone():
    plays = yaml.safe_load((ROOT / "playbooks/configure.yml").read_text())
    tags = {entry["role"]: entry["tags"] for play in plays for entry in play["roles"] if isinstance(entry, dict)}
    assert tags == {f"assay.fleet.{role.role}": [role.role] for role in SETTING_ROLES.values()}
