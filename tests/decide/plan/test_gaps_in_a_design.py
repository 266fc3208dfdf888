"""A node that leaves the middle of a fabric: with a gap no other cable moves, and without one the plan says how."""

from __future__ import annotations

import pytest

from assay.decide.plan.output_formats import format_plan_markdown, format_plan_text
from assay.fabric.design.compiler import compile_topology
from assay.model.specs.fabric.design_parts import format_node_list

DESIGN = "specs/fabrics/compute.yaml"
ALL = 'nodes: ["n0001..n0020"]'
WITHOUT = 'nodes: ["n0001..n0006", "n0008..n0020"]'
GAP = f'{ALL}\ngaps: ["n0007"]'


def remove(repository, nodes: str):
    return repository.edit("inventory/h100-a.yml", repository.host("n0007"), "").edit(DESIGN, ALL, nodes)


def ports(revision) -> dict[str, str]:
    """Return the leaf port of each node's first rail."""
    design = revision.fleet.designs["compute"]
    topology = compile_topology(design, revision.fleet)
    return {
        cable.a.node: f"{cable.b.port_id}" for cable in topology.cables if cable.a.node and "mlx5_0" in str(cable.a)
    }


def test_without_a_gap_the_plan_is_refused_with_the_lines_to_write(repository) -> None:
    plan = remove(repository, WITHOUT).plan()
    first = plan.refused[0]
    assert (first.limit, first.where) == ("gaps of compute", f"{DESIGN}:7")
    assert "removing n0007 would move the cables of 13 nodes (n0008..n0020)" in first.why
    assert first.why.endswith('\n  nodes: ["n0001..n0020"]\n  gaps: ["n0007"]')
    assert 'gaps: ["n0007"]' in format_plan_text(plan)
    assert 'gaps: \\["n0007"]' in format_plan_markdown(plan)


def test_with_these_lines_no_other_cable_moves(repository) -> None:
    before = ports(repository.declared())
    plan = remove(repository, GAP).plan()
    assert [one.limit for one in plan.refused] == []
    assert {node for job in plan.cables for node in job.nodes} == {"n0007"}
    assert len(before) == 20
    assert ports(repository.declared()) == {node: port for node, port in before.items() if node != "n0007"}


def test_a_node_in_the_place_of_a_gap_gets_its_ports(repository) -> None:
    before = ports(repository.declared())
    text = repository.host("n0007")
    remove(repository, GAP).commit()
    repository.edit("inventory/h100-a.yml", "    n0008:\n", f"{text}    n0008:\n").edit(DESIGN, '\ngaps: ["n0007"]', "")
    plan = repository.plan()
    assert plan.refused == ()
    assert ports(repository.declared()) == before


def test_the_last_node_needs_no_gap(repository) -> None:
    repository.edit("inventory/byo-b.yml", byo_host(repository, "n0020"), "")
    repository.edit(DESIGN, ALL, 'nodes: ["n0001..n0019"]')
    assert "gaps of compute" not in [one.limit for one in repository.plan().refused]


def byo_host(repository, name: str) -> str:
    text = (repository.root / "inventory/byo-b.yml").read_text()
    return text[text.index(f"    {name}:\n") :]


def test_a_second_node_that_goes_joins_the_first_gap(repository) -> None:
    remove(repository, GAP).commit()
    repository.edit("inventory/h100-a.yml", repository.host("n0009"), "")
    repository.edit(DESIGN, GAP, 'nodes: ["n0001..n0006", "n0008", "n0010..n0020"]')
    assert repository.plan().refused[0].why.endswith('nodes: ["n0001..n0020"]\n  gaps: ["n0007", "n0009"]')


def test_a_renamed_machine_keeps_its_place(repository) -> None:
    repository.edit("inventory/h100-a.yml", "    n0007:\n", "    node-7:\n")
    repository.edit(DESIGN, ALL, 'nodes: ["n0001..n0006", node-7, "n0008..n0020"]')
    plan = repository.plan()
    assert "gaps of compute" not in [one.limit for one in plan.refused]


def test_nodes_in_another_order_are_cabled_otherwise_on_purpose(repository) -> None:
    repository.edit("inventory/h100-a.yml", repository.host("n0007"), "")
    repository.edit(DESIGN, ALL, 'nodes: ["n0008..n0020", "n0001..n0006"]')
    assert "gaps of compute" not in [one.limit for one in repository.plan().refused]


def test_a_gap_that_has_no_place_is_a_mistake(repository) -> None:
    from assay.declare.check import check_repository

    repository.edit(DESIGN, ALL, f'{ALL}\ngaps: ["n0099"]')
    found = [one for one in check_repository(repository.root).problems if "gap" in one.message]
    assert [(one.code, one.line) for one in found] == [("ASY0084", 8)]


def test_check_says_how_to_keep_the_place_of_a_node_that_is_gone(repository) -> None:
    from assay.declare.check import check_repository

    repository.edit("inventory/h100-a.yml", repository.host("n0007"), "")
    (one,) = [one for one in check_repository(repository.root).problems if one.code == "ASY0025"]
    assert 'write `gaps: ["n0007"]`' in one.fix


def test_check_says_that_a_design_of_which_every_node_is_gone_goes_too(repository) -> None:
    """It is so where the example's pools were deleted: gaps for all its nodes would be refused."""
    from assay.declare.check import check_repository

    own = (
        "mine: {vars: {node_spec: server, profile: managed, site: oslo, workloads: none}, hosts: {m1: {rack: a, u: 1}}}"
    )
    for name in ("h100-a", "byo-b"):
        (repository.root / f"inventory/{name}.yml").unlink()
    (repository.root / "inventory/mine.yml").write_text(own)
    (one,) = [one for one in check_repository(repository.root).problems if one.code == "ASY0025"]
    assert one.fix == "list the nodes that it cables in `nodes`; if this fabric is gone, delete its file"
    (repository.root / one.where.partition(":")[0]).unlink()
    assert "ASY0025" not in {one.code for one in check_repository(repository.root).problems}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["n1", "n2", "n3"], '["n1..n3"]'),
        (["n1", "n2"], '["n1", "n2"]'),
        (["n3", "n2", "n1"], '["n3", "n2", "n1"]'),
        (["n9", "n10", "n11"], '["n9..n11"]'),
        (["n09", "n10", "n12"], '["n09", "n10", "n12"]'),
        (["spare", "n01", "n02", "n03"], '["spare", "n01..n03"]'),
        ([], "[]"),
    ],
)
def test_names_are_written_as_a_design_reads_them(names, said) -> None:
    assert format_node_list(names) == said


def test_the_ports_of_a_gap_are_free_and_lead_nowhere(repository) -> None:
    wiring = remove(repository, GAP).declared().fleet.designs["compute"].fat_tree
    assert 7 not in wiring.used_ports("leaves", 0)
    assert (wiring.find_far_end("leaves", 0, 7), wiring.find_far_end("leaves", 0, 8)) == (None, ("nodes", 56, 1))


def test_a_partition_may_name_a_range_with_a_gap_in_it(repository) -> None:
    repository.edit(DESIGN, "membership: full,", 'membership: full, nodes: ["n0001..n0008", "n0009..n0020"],')
    assert remove(repository, GAP).plan().refused == ()
