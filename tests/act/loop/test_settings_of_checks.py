"""Each setting that a node in service may get has a check that reads it alone: its failure says what differs."""

from __future__ import annotations

from assay.act.loop.snapshot import SettingsOfChecks
from assay.declare.loader import load_fleet
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.fabric.design.node_cables import digest_node_cables
from assay.model.specs.node.declared_settings import SETTING_ROLES
from tests.support.places import ROOT


def test_each_setting_that_may_be_corrected_has_a_check_of_its_own():
    fleet = load_fleet(ROOT)
    found = SettingsOfChecks(fleet, lambda: JudgingHashes(fleet, digest_node_cables))
    alone = {setting for settings in found.values() if len(settings) == 1 for setting in settings}
    assert {path for path, role in SETTING_ROLES.items() if role.applied != "zap"} <= alone
    assert found["suites/production/test_front_end.py::test_front_end_mtu"] == {"nics.mtu"}
    assert "suites/production/test_host.py::test_root_file_system" not in found, "it reads a limit"
