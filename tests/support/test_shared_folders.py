"""What shares something dear is run by one worker: its tests are handed out together."""

from __future__ import annotations

import pytest

from tests.support.places import ROOT
from tests.support.shared_folders import SHARED_FOLDERS, find_work_unit


@pytest.mark.parametrize("folder", SHARED_FOLDERS)
def test_a_shared_folder_is_there_and_handed_out_whole(folder: str) -> None:
    tests = [f"{file.relative_to(ROOT).as_posix()}::test_it[a/b]" for file in (ROOT / folder).rglob("test_*.py")]
    assert len(tests) > 1
    assert {find_work_unit(test) for test in tests} == {folder}


def test_other_files_are_handed_out_one_by_one() -> None:
    assert find_work_unit("tests/tell/test_pages.py::test_it[tests/act/boot/x]") == "tests/tell/test_pages.py"
    assert find_work_unit("tests/ledger_of_another/test_it.py::test_it") == "tests/ledger_of_another/test_it.py"
