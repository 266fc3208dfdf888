"""The suites' own words, read without running them: tests, marks, limits."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from assay.declare.repository.tree import WorkingFolder
from assay.declare.suite_source import parse_suites
from tests.support.places import ROOT

SUITE = '''
"""A suite."""
import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


def test_plain(gpu):
    assert gpu.heat


@pytest.mark.phase("test")
@pytest.mark.fault("gpu.hot")
@pytest.mark.active
def test_marked(gpu, limits):
    assert gpu.heat < limits.gpu_temperature < other.limits.elsewhere


def helper(limits):
    return limits.idle


class TestOfGpus:
    def test_method(self):
        assert True
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A fleet that is nothing but one suite."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "test_a.py").write_text(SUITE)
    return tmp_path


def test_functions_and_methods_of_test_classes_are_checks(root: Path) -> None:
    names = [f"suites/test_a.py::{name}" for name in ("test_plain", "test_marked", "test_method")]
    assert [test.name for test in parse_suites(WorkingFolder(root)).tests] == names


def test_a_function_s_mark_hides_the_module_s_of_that_name(root: Path) -> None:
    plain, marked, _ = parse_suites(WorkingFolder(root)).tests
    assert (plain.marks["phase"], plain.active) == (("seatrial", "production"), False)
    assert (marked.marks["phase"], marked.marks["fault"], marked.active) == (("test",), ("gpu.hot",), True)


def test_limits_are_found_wherever_they_are_read(root: Path) -> None:
    assert {(limit.name, limit.line) for limit in parse_suites(WorkingFolder(root)).limits} == {
        ("gpu_temperature", 16),
        ("idle", 20),
    }


def test_a_suite_that_changes_is_read_again(root: Path) -> None:
    assert len(parse_suites(WorkingFolder(root)).tests) == 3
    (root / "suites" / "test_b.py").write_text("def test_more(node):\n    assert node\n")
    assert len(parse_suites(WorkingFolder(root)).tests) == 4


def test_a_suite_that_is_no_python_is_kept_apart(root: Path) -> None:
    (root / "suites" / "test_b.py").write_text("def test_more(:\n")
    ((where, said),) = parse_suites(WorkingFolder(root)).broken
    assert (where.file, where.line, said) == ("suites/test_b.py", 1, "invalid syntax")
    assert len(parse_suites(WorkingFolder(root)).tests) == 3


def test_a_folder_without_suites_has_none(tmp_path: Path) -> None:
    assert parse_suites(WorkingFolder(tmp_path)).tests == []


def test_the_example_s_suites_read_as_python_reads_them() -> None:
    example = ROOT
    expected = [
        f"{path.relative_to(example).as_posix()}::{node.name}"
        for path in sorted((example / "suites").rglob("test_*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert [test.name for test in parse_suites(WorkingFolder(example)).tests] == expected
    assert len(expected) >= 25
