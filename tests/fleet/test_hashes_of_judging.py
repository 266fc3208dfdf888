"""What a check is judged by has a hash. It changes exactly where a plan announces that the check must run again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from assay.fleet.fleet_loader import build_fleet, read_draft
from assay.fleet.spec_values_read_by_checks import JudgingHashes, read_check_inputs
from assay.plan.check_reruns import StaleCheckFinder
from assay.plan.fleet_revision import FleetRevision
from assay.plan.spec_pair_comparison import compare_spec_pairs, spec_pair_key

ROOT = Path(__file__).parents[2]
SPEC, NODE = "specs/nodes/hgx-h100.yaml", "n0001"


def read(root: Path) -> FleetRevision:
    draft = read_draft(root)
    return FleetRevision(build_fleet(draft), read_check_inputs(draft.tree))


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for folder in ("inventory", "specs", "suites"):
        skipped = shutil.ignore_patterns("__pycache__", "recordings")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skipped)
    return tmp_path


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def first_limit(fleet: Path) -> tuple[str, str]:
    """Return a line of a limit's value, and the same with another value."""
    lines = (fleet / SPEC).read_text().splitlines()
    line = next(line for line in lines if "nccl_all_reduce" in line or "value:" in line)
    number = line.split("value:")[1].split(",")[0].strip()
    return line, line.replace(f"value: {number}", f"value: {float(number) + 1:g}")


CHANGES = {
    "nothing": lambda fleet: None,
    "a limit": lambda fleet: change(fleet / SPEC, *first_limit(fleet)),
    "a comment": lambda fleet: change(fleet / SPEC, "kind:", "# a comment\nkind:"),
    "the owner": lambda fleet: change(fleet / SPEC, "owner:", "owner: somebody-else #"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_hash_changes_where_the_plan_announces_a_run(fleet: Path, what: str) -> None:
    before, then = read(fleet), JudgingHashes(read(fleet).fleet).of_node(NODE)
    CHANGES[what](fleet)
    after = read(fleet)
    now = JudgingHashes(after.fleet).of_node(NODE)
    changed = {check for check in now if now[check] != then.get(check)}
    old, new = before.fleet.nodes[NODE], after.fleet.nodes[NODE]
    key = spec_pair_key(old, new)
    pair = compare_spec_pairs(before, after, [(old, new)])[key]
    announced = {stale.check for stale in StaleCheckFinder(before, after).find(key, pair, frozenset())}
    assert changed == announced
    assert bool(changed) == (what == "a limit")


def test_a_check_that_is_written_otherwise_has_another_hash(fleet: Path) -> None:
    revision = read(fleet)
    then = JudgingHashes(revision.fleet).of_node(NODE)
    check = next(iter(then))
    path, _, name = check.partition("::")
    (fleet / path).write_text((fleet / path).read_text() + "\n\ndef another() -> None:\n    pass\n")
    assert JudgingHashes(revision.fleet).of_node(NODE) == then, "another function of the file does not matter"
    text = (fleet / path).read_text()
    body = text.index(":\n", text.index(f"def {name}(")) + 2
    (fleet / path).write_text(f"{text[:body]}    unused = 1\n{text[body:]}")
    now = JudgingHashes(revision.fleet).of_node(NODE)
    assert {one for one in now if now[one] != then[one]} == {check}


def test_a_node_that_the_inventory_no_longer_has_is_judged_by_nothing(fleet: Path) -> None:
    assert JudgingHashes(read(fleet).fleet).of_node("gone") == {}
