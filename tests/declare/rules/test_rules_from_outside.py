"""A distribution adds rules of `assay check` by an entry point of the group `assay.check_rules`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.declare.conftest import Write
from tests.support.plugin_distribution import PluginDistribution

OWNED = """\
from assay.fleetkit import NodeSpec, RuleFinding, rule


@rule("SITE0001", "a node spec without an owner")
def unowned_spec(draft):
    '''Nobody would answer for it.'''
    for spec in draft.specs_of_model(NodeSpec).values():
        if not spec.owner:
            place = draft.find_position(f"NodeSpec/{spec.name}")
            yield RuleFinding(place, f"{spec.name} has no owner", "write `owner: TEAM`")
"""
GIVEN_TWICE = OWNED.replace("SITE0001", "ASY0020")
FAILING = OWNED.replace("if not spec.owner:", "if not spec.team:")


def distribution(folder: Path, source: str) -> PluginDistribution:
    return PluginDistribution(folder, "site-rules", {"assay.check_rules": {"site": "site_rules"}}, site_rules=source)


def test_a_rule_of_an_installed_distribution_is_checked_and_explained(fleet_with: Write, tmp_path: Path) -> None:
    outside, fleet = distribution(tmp_path / "outside", OWNED), fleet_with({})
    found = outside.assay("check", fleet=fleet, exit_code=1)
    assert "specs/node.yaml:2:1: error SITE0001: small has no owner" in found
    assert "Nobody would answer for it." in outside.assay("check", "--explain", "SITE0001", fleet=fleet)
    node = (fleet / "specs/node.yaml").read_text()
    outside.assay("check", fleet=fleet_with({"specs/node.yaml": f"{node}owner: compute\n"}))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nothing_of_that_name\n", "cannot be loaded: ModuleNotFoundError: No module named"),
        (GIVEN_TWICE, "cannot be loaded: ValueError: ASY0020 is given twice"),
        (FAILING, "the rule SITE0001 of site_rules failed: AttributeError: 'NodeSpec' object has no attribute 'team'"),
    ],
)
def test_a_broken_plug_in_is_an_error_that_names_it(
    fleet_with: Write, tmp_path: Path, source: str, message: str
) -> None:
    outside = distribution(tmp_path / "outside", source)
    found = " ".join(outside.assay("check", fleet=fleet_with({}), exit_code=2).split())
    assert message in found
    assert "Traceback" not in found
    assert "site" in found
