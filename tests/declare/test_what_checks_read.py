"""What a check reads of the specs is found in its source, without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.declare.repository.tree import WorkingFolder
from assay.declare.spec_values_read_by_checks import CheckInputs, LimitBound, read_check_inputs
from tests.support.places import ROOT


@pytest.fixture
def reads(tmp_path: Path):
    (tmp_path / "suites").mkdir()

    def of(source: str) -> CheckInputs:
        (tmp_path / "suites/test_a.py").write_text(source)
        return read_check_inputs(WorkingFolder(tmp_path))["suites/test_a.py::test_it"]

    return of


def test_limits_and_paths_of_the_spec_are_read_by_name(reads) -> None:
    found = reads("def test_it(gpu, spec, limits):\n    assert gpu.x < limits.hot + spec.gpus.count\n")
    assert (found.limits, found.spec, found.fixtures) == ({"hot"}, {"gpus.count"}, {"gpu", "spec", "limits"})


def test_what_a_function_of_the_module_reads_is_read_by_the_check(reads) -> None:
    found = reads(
        "HOT = 3\ndef far(spec):\n    return near(spec.fans)\ndef near(x):\n    return x + HOT + limits.low\n"
        "def other():\n    return limits.high\ndef test_it(spec):\n    assert far(spec)\n"
    )
    assert found.limits == {"low"}
    assert found.spec == {"fans", ""}  # it is handed on whole


def test_what_is_declared_of_a_part_is_read(reads) -> None:
    found = reads("def test_it(hca, node):\n    assert hca.declared.guid != node.declared.serial\n")
    assert found.declared == {("hca", "guid"), ("node", "serial")}


def test_a_measurement_is_tied_to_the_limit_that_it_is_held_to(reads) -> None:
    found = reads(
        "def test_it(psu, limits, measure):\n"
        '    measure("v", psu.v, at_least=limits.low, at_most=limits.high)\n'
        '    measure("w", psu.w, at_least=2 * limits.low)\n'
    )
    assert found.bounds == (LimitBound("v", "at_least", "low"), LimitBound("v", "at_most", "high"))
    assert found.limits_by_measurement() == {"v": [("at_least", "low"), ("at_most", "high")]}


def test_meaning_is_told_from_its_dress(reads) -> None:
    plain = reads("def test_it(node):\n    assert node.x == 1\n").digest
    assert reads('def test_it(node):\n    """Say it."""\n\n    assert node.x == 1  # one\n').digest == plain
    assert reads("def test_it(node):\n    assert node.x == 2\n").digest != plain
    assert (
        reads("import pytest\npytestmark = [pytest.mark.active]\ndef test_it(node):\n    assert node.x == 1\n").digest
        != plain
    )


def test_a_suite_that_is_no_python_reads_nothing(tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/test_a.py").write_text("def test_it(:\n")
    assert read_check_inputs(WorkingFolder(tmp_path)) == {}


def test_every_limit_that_the_example_s_suites_mention_is_read_by_a_check() -> None:
    read = {name for one in read_check_inputs(WorkingFolder(ROOT)).values() for name in one.limits}
    assert {"gpu_temperature", "hca_rate", "psu_input_low"} <= read
