"""What the loss of a switch, a node or a cable costs is told in a few plain lines, and the numbers are right."""

import json
import sys

import pytest

from assay.cli.app import main
from assay.fabric.design.impact import (
    assess_failure,
    build_fabric_graph,
    find_connected_parts,
)
from assay.model.errors import AssayError
from tests.support.fabrics.fat_trees import fat_tree
from tests.support.judged_answers import judge_answer


@pytest.fixture(scope="module")
def tree():
    """Two units of three nodes on three rails; each leaf has two cables to either of two spines."""
    return fat_tree()


@pytest.fixture(scope="module")
def deep():
    return fat_tree(units=1, nodes=4, rails=3, spines=2, pair=2, pods=2, cores=2)


def guid(tree, name):
    return next(device.guid for device in tree.devices.values() if device.name == name)


def test_a_fabric_hangs_together_and_a_dead_spine_leaves_it_so(tree):
    assert [len(part) for part in find_connected_parts(build_fabric_graph(tree))] == [6 + 6 + 2]
    assert [
        len(part) for part in find_connected_parts(build_fabric_graph(tree, without=[guid(tree, "spine-0-0")]))
    ] == [6 + 6 + 1]


def test_both_dead_spines_leave_each_unit_to_itself(tree):
    found = find_connected_parts(build_fabric_graph(tree, without=[guid(tree, "spine-0-0"), guid(tree, "spine-0-1")]))
    assert [len(part) for part in found] == [3 + 3, 3 + 3]


def test_a_lost_spine_costs_the_leaves_bandwidth(tree):
    told = assess_failure(tree, "spine-0-0")
    assert told.lines == (
        "without spine-0-0 6 switches below it are left with 2 of 4 cables up (50% of the bandwidth)",
    )
    assert told.cut_off == ()


def test_a_lost_leaf_costs_its_nodes_a_rail(tree):
    assert assess_failure(tree, "leaf-0-0").lines[0] == "without leaf-0-0 3 nodes are left with 2 of 3 links"


def test_a_lost_core_costs_the_spines_bandwidth(deep):
    told = assess_failure(deep, "core-0")
    assert told.lines[0] == "without core-0 4 switches below it are left with 2 of 4 cables up (50% of the bandwidth)"


def test_what_is_cut_off_is_named():
    lonely = fat_tree(units=1, nodes=3, rails=3, spines=1, pods=2, cores=1)
    told = assess_failure(lonely, "spine-1-0")
    assert told.cut_off == ("leaf-1-0", "leaf-1-1", "leaf-1-2", "n100", "n101", "n102")
    assert "cut off from the rest: 6 nodes and switches (leaf-1-0, leaf-1-1, leaf-1-2, n100 …)" in told.lines


def test_a_lost_node_costs_nobody_else_anything(tree):
    assert assess_failure(tree, "n003").lines == ("without n003 no other node loses bandwidth to any other",)


@pytest.mark.parametrize("name", ["n003/mlx5_1", "n003 mlx5_1", "leaf-0-4[1]"])
def test_a_nodes_cable_is_one_of_its_links_by_either_end(tree, name):
    assert assess_failure(tree, name).lines[0].endswith("carries 1 of the 3 links of n003")


def test_a_cable_between_switches_is_a_share_of_the_leafs_bandwidth(tree):
    told = assess_failure(tree, "leaf-0-0[4]")
    assert told.lines[0].endswith("carries 1 of the 4 cables up of leaf-0-0, 1 of the 2 to spine-0-0")


@pytest.mark.parametrize("name", ["leaf-9", "leaf-0-0[60]", "leaf-0-0[x]", "", "[1]"])
def test_what_is_not_there_is_said(tree, name):
    with pytest.raises(AssayError) as trouble:
        assess_failure(tree, name)
    assert trouble.value.fix


def test_the_command_prints_lines_for_people_and_a_document_for_machines(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["assay", "fabric", "impact", *words])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        judge_answer(["fabric", "impact", *words], said.out)
        return end.value.code or 0, said

    code, said = run("spine-01")
    assert (code, len(said.out.splitlines())) == (0, 1)
    code, said = run("spine-01", "--format", "json")
    assert json.loads(said.out)["cut_off"] == []
    assert run("spine-99")[0] == 2
