"""A check that imports a module beside it by the wrong name is told the right one."""

from __future__ import annotations

from assay.declare.check import check_repository
from tests.declare.rules.cases.case import SUITE


def test_the_import_of_a_helper_in_the_same_folder_is_told_as_it_works(fleet_with) -> None:
    imports = SUITE.replace("import pytest", "import our_helper\nimport pytest")
    files = {"suites/racks/test_heat.py": imports, "suites/racks/our_helper.py": ""}
    found = [one for one in check_repository(fleet_with(files)).problems if one.code == "ASY0397"]
    assert [(one.where, one.fix) for one in found] == [
        ("suites/racks/test_heat.py:3:1", "import it as suites.racks.our_helper")
    ]
    settings = {"pytest.ini": "[pytest]\npythonpath = suites\n"}
    (told,) = [one for one in check_repository(fleet_with(files | settings)).problems if one.code == "ASY0397"]
    assert told.fix == "import it as racks.our_helper"
    right = files | settings | {"suites/racks/test_heat.py": imports.replace("our_helper", "racks.our_helper")}
    assert "ASY0397" not in {one.code for one in check_repository(fleet_with(right)).problems}
