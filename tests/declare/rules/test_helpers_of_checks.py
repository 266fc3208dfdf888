"""A check that imports a module beside it by the wrong name is told the right one."""

from __future__ import annotations

import pytest

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


def test_a_helper_in_a_folder_that_python_hides_is_moved(fleet_with) -> None:
    imports = SUITE.replace("import pytest", "import our_helper\nimport pytest")
    files = {"suites/site/test_heat.py": imports, "suites/site/our_helper.py": ""}
    settings = {"pytest.ini": "[pytest]\npythonpath = suites\n"}
    (told,) = [one for one in check_repository(fleet_with(files | settings)).problems if one.code == "ASY0397"]
    assert told.fix == "move it to suites/: Python has a site of its own"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "suites/racks/conftest.py",
            "import pytest\n\n\n@pytest.fixture(params=[1, 2])\ndef lane(request):\n    pass\n",
        ),
        ("suites/racks/test_heat.py", SUITE + '\n\npytestmark = pytest.mark.parametrize("lane", [1, 2])\n'),
    ],
)
def test_what_gives_a_check_several_outcomes_is_refused_wherever_it_stands(fleet_with, file, text) -> None:
    (told,) = [one for one in check_repository(fleet_with({file: text})).problems if one.code == "ASY0396"]
    assert told.fix == "write a function for each value, or a loop with `measure(…, place=…)`"
