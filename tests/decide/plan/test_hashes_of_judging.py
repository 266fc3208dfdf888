"""What a check is judged by has a hash. It changes exactly where a plan announces that the check must run again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from assay.decide.plan.cable_moves import find_recabled_nodes, plan_cabling_jobs
from assay.decide.plan.check_reruns import StaleCheckFinder
from assay.decide.plan.inputs import FleetRevision
from assay.decide.plan.spec_pair_comparison import NodeGroup, compare_spec_pairs, spec_pair_key
from assay.declare.loader import build_fleet, read_draft
from assay.declare.spec_values_read_by_checks import JudgingHashes, read_check_inputs
from assay.fabric.design.node_cables import digest_node_cables
from tests.support.places import ROOT

SPEC, DESIGN, NODE = "specs/nodes/hgx-h100.yaml", "specs/fabrics/compute.yaml", "n0001"


def read(root: Path) -> FleetRevision:
    draft = read_draft(root)
    return FleetRevision(build_fleet(draft), read_check_inputs(draft.tree))


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for folder in ("inventory", "specs", "suites"):
        skipped = shutil.ignore_patterns("__pycache__", "recordings")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skipped)
    return tmp_path


def hashes(revision: FleetRevision, node: str = NODE) -> dict[str, str]:
    return dict(JudgingHashes(revision.fleet, digest_node_cables).of_node(node))


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


def first_leaf(fleet: Path) -> tuple[str, str]:
    """Return the GUID of the first leaf, and another."""
    text = (fleet / DESIGN).read_text()
    guid = re.findall(r"guid: \"?(0x[0-9a-f]{16})", text[text.index("leaves:") :])[0]
    return guid, f"{guid[:-4]}ffff"


CHANGES = {
    "nothing": lambda fleet: None,
    "a limit": lambda fleet: change(fleet / SPEC, *first_limit(fleet)),
    "a comment": lambda fleet: change(fleet / SPEC, "kind:", "# a comment\nkind:"),
    "the rate of cables": lambda fleet: change(fleet / DESIGN, "rate: 4xNDR", "rate: 4xXDR"),
    "a leaf": lambda fleet: change(fleet / DESIGN, *first_leaf(fleet)),
    "the order of nodes": lambda fleet: change(fleet / DESIGN, '"n0001..n0020"', '"n0002..n0020", "n0001"'),
    "another node's adapter": lambda fleet: change(fleet / "inventory/h100-a.yml", "9a0606", "9a06ff"),
    "the length of cables": lambda fleet: change(fleet / DESIGN, "node_leaf: 10", "node_leaf: 12"),
    "the place of a leaf": lambda fleet: change(fleet / DESIGN, "rack: r06, u: 30", "rack: r09, u: 12"),
    "the owner": lambda fleet: change(fleet / SPEC, "owner:", "owner: somebody-else #"),
}


STALE = {
    "a limit": set(),
    **{what: {"suites/fabric/test_cabling.py"} for what in ("the rate of cables", "a leaf", "the order of nodes")},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_hash_changes_where_the_plan_announces_a_run(fleet: Path, what: str) -> None:
    before = read(fleet)
    then = hashes(before)
    CHANGES[what](fleet)
    after = read(fleet)
    now = hashes(after)
    due = {ident for ident, one in after.checks.items() if not one.find_lacking(after.fleet.parts_of(NODE))}
    changed = {check for check in due & now.keys() if now[check] != then.get(check)}
    old, new = before.fleet.nodes[NODE], after.fleet.nodes[NODE]
    key = spec_pair_key(old, new)
    pair = compare_spec_pairs(before, after, [(old, new)])[key]
    recabled = find_recabled_nodes(before.fleet, after.fleet, plan_cabling_jobs(before.fleet, after.fleet))
    said = frozenset({"cables"} if NODE in recabled else ())
    group = NodeGroup(key, pair, said, ((old, new),))
    announced = {stale.check for stale in StaleCheckFinder(before, after).find(group)}
    assert changed == announced
    assert {one.partition("::")[0] for one in changed} >= STALE.get(what, set())
    assert bool(changed) == (what in STALE)


def test_a_check_that_is_written_otherwise_has_another_hash(fleet: Path) -> None:
    revision = read(fleet)
    then = hashes(revision)
    check = next(iter(then))
    path, _, name = check.partition("::")
    (fleet / path).write_text((fleet / path).read_text() + "\n\ndef another() -> None:\n    pass\n")
    assert hashes(revision) == then, "another function of the file does not matter"
    text = (fleet / path).read_text()
    body = text.index(":\n", text.index(f"def {name}(")) + 2
    (fleet / path).write_text(f"{text[:body]}    unused = 1\n{text[body:]}")
    now = hashes(revision)
    assert {one for one in now if now[one] != then[one]} == {check}


def test_a_node_that_the_inventory_no_longer_has_is_judged_by_nothing(fleet: Path) -> None:
    assert hashes(read(fleet), "gone") == {}


def test_the_cables_of_a_design_that_cannot_be_compiled_are_not_those_of_before(fleet: Path) -> None:
    then = hashes(read(fleet))
    change(fleet / "inventory/h100-a.yml", "9a0606", "9a0616")  # a GUID of two adapters
    now = hashes(read(fleet))
    assert {one.partition("::")[0] for one in now if now[one] != then[one]} >= {"suites/fabric/test_cabling.py"}
