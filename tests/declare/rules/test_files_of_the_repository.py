"""Files that git does not hold as they are used: links, pipes, ignored files, and endings that nobody reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from tests.declare.rules.cases.case import NODE, Link

Write = Callable[[Mapping[str, "str | None"]], Path]


def codes(root: Path) -> list[str]:
    return [problem.code for problem in check_repository(root).problems]


@pytest.mark.parametrize("target", ["x.yaml", "nowhere.yaml", "../specs", "."])
def test_a_link_that_leads_nowhere_or_back_is_told(target: str, fleet_with: Write) -> None:
    assert codes(fleet_with({"specs/x.yaml": Link(target)})) == ["ASY0231"]


def test_a_pipe_is_told_and_not_waited_for(fleet_with: Write) -> None:
    root = fleet_with({})
    os.mkfifo(root / "specs/x.yaml")
    assert codes(root) == ["ASY0231"]


def test_a_chain_of_links_may_not_leave_the_repository_on_its_way(fleet_with: Write, tmp_path: Path) -> None:
    outside = tmp_path / "node.yaml"
    outside.write_text(NODE)
    root = fleet_with({"specs/node.yaml": None, "hop.yaml": Link(str(outside))})
    (root / "specs/node.yaml").symlink_to("../hop.yaml")
    assert codes(root) == ["ASY0230"]


def test_a_linked_folder_is_no_way_out(fleet_with: Write, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/node.yaml").write_text("kind: Nonsense\n")
    root = fleet_with({"specs/more": Link(str(tmp_path / "elsewhere"))})
    assert codes(root) == ["ASY0230"], "what stands there is not read"
    (root / "specs/more").unlink()
    (root / "specs/root").symlink_to("/")
    assert codes(root) == ["ASY0230", "ASY0231"], "no walk through the whole machine"


@pytest.mark.parametrize(
    ("name", "text"),
    [("x.YML", ""), ("x.json", '{"kind": "NodeSpec", "name": "x"}'), ("x.yaml.bak", NODE), ("x.yaml~", NODE)],
)
def test_a_spec_under_another_ending_is_told(name: str, text: str, fleet_with: Write) -> None:
    assert codes(fleet_with({f"specs/{name}": text})) == ["ASY0232"]


def test_schemas_lists_and_notes_are_no_specs(fleet_with: Write) -> None:
    files = {
        "specs/s.json": '{"properties": {"kind": {"const": "NodeSpec"}}}',
        "specs/README.md": "The kind: NodeSpec\n",
    }
    assert codes(fleet_with({**files, "specs/switches.csv": "name,rack,u,guid\n"})) == []


@pytest.mark.parametrize("name", ["suites/conftest.py", "suites/more/test_own.py", "inventory/group_vars/own.yml"])
def test_what_git_ignores_and_assay_reads_is_told(name: str, fleet_with: Write) -> None:
    ignore = f"{name.rpartition('/')[2]}\n__pycache__\n"
    assert codes(fleet_with({name: "", ".gitignore": ignore, "suites/__pycache__/test_x.pyc": ""})) == ["ASY0233"]
