"""Every code has the smallest fleet that triggers it, and one just beside it that does not."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository, load_rules, rule
from tests.declare.rules.cases.case import FABRIC, POOL, Case

Write = Callable[[Mapping[str, "str | None"]], Path]
CASES: dict[str, Case] = {
    code: case
    for theme in sorted(
        path.stem for path in (Path(__file__).parent / "cases").glob("[a-z]*.py") if path.stem != "case"
    )
    for code, case in importlib.import_module(f"tests.declare.rules.cases.{theme}").CASES.items()
}


@pytest.mark.parametrize("code", CASES)
def test_the_smallest_fleet_with_the_mistake_is_told_so_at_its_place(code: str, fleet_with: Write) -> None:
    found = [problem for problem in check_repository(fleet_with(CASES[code].wrong)).problems if problem.code == code]
    assert [problem.where for problem in found][:1] == [CASES[code].where]
    assert all(problem.message and problem.fix for problem in found)


@pytest.mark.parametrize("code", CASES)
def test_the_fleet_beside_it_is_left_in_peace(code: str, fleet_with: Write) -> None:
    assert [
        problem for problem in check_repository(fleet_with(CASES[code].right)).problems if problem.code == code
    ] == []


def test_a_fabric_is_not_blamed_for_nodes_that_could_not_be_read(fleet_with: Write) -> None:
    found = check_repository(
        fleet_with({"specs/fabric.yaml": FABRIC, "inventory/pool.yml": POOL + "  hosts: {}\n"})
    ).problems
    assert [problem.code for problem in found] == ["ASY0001"]


def test_every_rule_of_the_book_has_its_case() -> None:
    asked_of_sources = {"ASY0414"}  # by the command alone: tests/cli/verbs/test_images_and_boot_commands.py
    assert set(CASES) | asked_of_sources == set(load_rules())


def test_the_smallest_fleet_has_no_problem(fleet_with: Write) -> None:
    assert check_repository(fleet_with({})).problems == []


def test_every_rule_says_what_it_is_and_why() -> None:
    for entry in load_rules().values():
        assert entry.title
        assert entry.why.endswith((".", "?"))
        assert entry.code.startswith("ASY")


def test_a_code_cannot_be_given_twice() -> None:
    with pytest.raises(ValueError, match="ASY0020 is given twice"):
        rule("ASY0020", "again")(lambda draft: [])
