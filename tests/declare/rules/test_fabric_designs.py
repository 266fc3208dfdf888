"""What `check` says of fabric designs beyond the smallest cases: lists of cables, adapters, several designs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from tests.declare.rules.cases.case import FABRIC, NODE, POOL

Write = Callable[[Mapping[str, "str | None"]], Path]
SPEC = NODE.replace("hcas: []", 'hcas: [{name: mlx5_0, rail: 0, pci: "0000:18:00.0"}]')
NODES = (
    POOL.replace("}\n", ", fabric: net}\n")
    .replace("u: 1,", 'hca_guids: ["0x00000000000000a1"], u: 1,')
    .replace("u: 2,", 'hca_guids: ["0x00000000000000a2"], u: 2,')
)
THIRD = NODES + (
    '    n3: {hca_guids: ["0x00000000000000a3"], node_spec: small, profile: managed, site: lab, rack: r1, u: 3, '
    "serial_number: S3, fabric: net}\n"
)
OTHER = (
    FABRIC.replace("name: net", "name: other").replace("000000000000000", "100000000000000").replace("n1, u", "n9, u")
)


@pytest.fixture
def told(fleet_with: Write) -> Callable[..., list[str]]:
    def told(design: str, **more: str) -> list[str]:
        files = {"specs/node.yaml": SPEC, "inventory/pool.yml": NODES, "specs/fabric.yaml": design}
        found = check_repository(
            fleet_with({**files, **{f"specs/{name}.yaml": text for name, text in more.items()}})
        ).problems
        return [f"{problem.code} {problem.message}" for problem in found]

    return told


def listed(*cables: str) -> str:
    return FABRIC + "cables:\n" + "".join(f"  - {{{cable}}}\n" for cable in cables)


def test_a_design_whose_nodes_have_its_rails_has_no_problem(told: Callable[..., list[str]]) -> None:
    assert told(FABRIC) == []


def test_a_listed_cable_may_not_take_a_port_of_the_list(told: Callable[..., list[str]]) -> None:
    cable = 'a: {device: leaf, port: 5}, b: {device: s, guid: "0x0000000000000009", port: 1}'
    assert told(listed(cable)) == []
    assert told(listed(cable, cable)) == [
        "ASY0080 port 5 of leaf is cabled by specs/fabric.yaml:11 already",
        "ASY0080 port 1 of s is cabled by specs/fabric.yaml:11 already",
    ]


def test_a_device_of_its_own_is_named_by_its_name_afterwards(told: Callable[..., list[str]]) -> None:
    first = 'a: {device: leaf, port: 5}, b: {device: s, guid: "0x0000000000000009", port: 1}'
    assert told(listed(first, "a: {device: leaf, port: 6}, b: {device: s, port: 2}")) == []


def test_an_adapter_has_one_port_and_the_rules_may_use_it(told: Callable[..., list[str]]) -> None:
    assert told(listed("a: {device: n1 mlx5_0, port: 1}, b: {device: leaf, port: 5}")) == [
        "ASY0080 port 1 of n1 mlx5_0 is cabled by the rules of net already"
    ]
    assert told(listed("a: {device: n1 mlx5_0, port: 2}, b: {device: leaf, port: 5}")) == [
        "ASY0081 n1 mlx5_0 has 1 ports"
    ]


def test_a_spine_s_ports_count_as_far_as_the_leaves_need_them(told: Callable[..., list[str]]) -> None:
    other = 'b: {device: s, guid: "0x0000000000000009", port: 1}'
    assert told(listed(f"a: {{device: spine, port: 3}}, {other}")) == []
    assert told(listed(f"a: {{device: spine, port: 2}}, {other}")) == [
        "ASY0080 port 2 of spine is cabled by the rules of net already"
    ]


def test_a_node_outside_of_the_rules_keeps_to_its_rail(fleet_with: Write) -> None:
    two_rails = SPEC.replace("hcas: [", 'hcas: [{name: mlx5_1, rail: 1, pci: "0000:40:00.0"}, ')
    nodes = THIRD
    for number in "123":
        nodes = nodes.replace(
            f'"0x00000000000000a{number}"', f'"0x00000000000000a{number}", "0x00000000000000b{number}"'
        )
    design = FABRIC.replace("rails: 1", "rails: 2").replace("name: leaf", 'name: "leaf{rail}"')
    design = design.replace("per_pair: 2", "per_pair: 2").replace(
        "u: 1}]", 'u: 1}, {guid: "0x0000000000000003", rack: n1, u: 3}]'
    )

    def told(leaf: str) -> list[str]:
        cable = f"cables:\n  - {{a: {{device: n3 mlx5_1, port: 1}}, b: {{device: {leaf}, port: 5}}}}\n"
        files = {"specs/node.yaml": two_rails, "inventory/pool.yml": nodes, "specs/fabric.yaml": design + cable}
        return [f"{problem.code} {problem.message}" for problem in check_repository(fleet_with(files)).problems]

    assert told("leaf1") == []
    assert told("leaf0") == ["ASY0082 n3 mlx5_1 is on rail 1, leaf0 on rail 0"]


def test_two_designs_may_not_share_a_node_s_adapters(told: Callable[..., list[str]]) -> None:
    assert told(FABRIC, other=OTHER) == ["ASY0080 n1, n2: the adapters are cabled by net already"]


def test_two_designs_may_share_a_switch_but_no_port_of_it(told: Callable[..., list[str]]) -> None:
    spine = '{guid: "0x0000000000000002", rack: n1, u: 2}'
    other = OTHER.replace("[n1, n2]", "[n3]").replace('{guid: "0x1000000000000002", rack: n9, u: 2}', spine)
    found = told(FABRIC, other=other)
    assert "ASY0080 port 1 of the switch 0x0000000000000002 is cabled by net already" in found


def test_two_designs_may_not_give_one_place_to_two_switches(told: Callable[..., list[str]]) -> None:
    found = told(FABRIC, other=OTHER.replace("rack: n9, u: 2", "rack: n1, u: 2").replace("[n1, n2]", "[n3]"))
    assert "ASY0085 the switch 0x1000000000000002 stands in n1 U2, but 0x0000000000000002 stands there" in found


def test_a_switch_may_not_have_an_adapter_s_guid(told: Callable[..., list[str]]) -> None:
    found = told(FABRIC.replace("0x0000000000000002", "0x00000000000000a2"))
    assert found == ["ASY0085 the switch has the GUID 0x00000000000000a2 of an adapter of n2"]


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        ("up: 3..4", "up: 2..3", "ASY0080", "`down` and `up` overlap"),
        ("ports: 8", "ports: 3", "ASY0081", "a S has 3 ports, `up` ends at 4"),
        ("down: 1..2, up: 3..4", "down: 1..1, up: 3..4", "ASY0081", "2 units × 1 rails need 2 leaves, not 1"),
        ("per_pair: 2", "per_pair: 3", "ASY0081", "do not use the leaves' 2 up ports"),
        ("per_pair: 2", "per_pair: 1", "ASY0084", "do not use the leaves' 2 up ports"),
        ("[n1, n2]", "[n2..n1]", "ASY0084", "is no range of names"),
        ("[n1, n2]", "[n1..n999999999]", "ASY0084", "more than 200000 names"),
        ("[n1, n2]", "[a1..a150000, b1..b150000, c1..c150000]", "ASY0084", "more than 200000 nodes"),
        ("[n1, n2]", "[n1, n1]", "ASY0085", "node n1 is given twice"),
        ("name: spine", "name: leaf", "ASY0085", "name leaf is given twice"),
        ("up: 3..4", "up: 4..3", "ASY0084", "'4..3' holds no ports"),
        ("name: spine", 'name: "spine{unit}"', "ASY0003", "should match pattern"),
        ("down: 1..2", "down: 1..999999999", "ASY0003", "should match pattern"),
    ],
)
def test_rules_that_do_not_fit_together_have_their_code(
    old: str, new: str, code: str, says: str, told: Callable[..., list[str]]
) -> None:
    assert old in FABRIC
    found = told(FABRIC.replace(old, new))
    assert any(said.startswith(code) and says in said for said in found), found


def test_fewer_ports_down_than_up_oversubscribe_nothing(told: Callable[..., list[str]]) -> None:
    assert told(FABRIC.replace("up: 3..4", "up: 3..6").replace("per_pair: 2", "per_pair: 4")) == []


OVERRIDE = "overrides:\n  - {device: leaf, port: 1, to: {device: leaf, port: 5}, why: port 1 is broken}\n"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (OVERRIDE, []),
        ("overrides: [{device: leaf, port: 3}]\n", []),
        (OVERRIDE + "spares: [{device: leaf, ports: 7..8}, {device: leaf, ports: 1..1}]\n", []),
        (OVERRIDE.replace("port: 5", "port: 2"), ["ASY0080 port 2 of leaf is cabled by the rules of net already"]),
        (OVERRIDE.replace("port: 5", "port: 9"), ["ASY0081 leaf has 8 ports"]),
        (OVERRIDE.replace("port: 1,", "port: 6,"), ["ASY0084 the rules have no cable at port 6 of leaf"]),
        (OVERRIDE.replace("{device: leaf, port: 5}", "{device: lef, port: 5}"), ["ASY0084 there is no device lef"]),
        ("spares: [{device: leaf, ports: 2..2}]\n", ["ASY0080 port 2 of leaf must stay free, but has a cable"]),
        (
            (
                "overrides: [{device: leaf, port: 3}]\n"
                'cables: [{a: {device: spine, port: 1}, b: {device: s, guid: "0x0000000000000009", port: 1}}]\n'
            ),
            [],
        ),
        (
            (
                "overrides: [{device: leaf, port: 1}]\n"
                'cables: ["n1 mlx5_0/1 - leaf/6 4xNDR 2m"]\nspares: [{device: leaf, ports: 1..1}]\n'
            ),
            [],
        ),
        (
            'devices: [{guid: "0x0000000000000009", name: s, ports: 2}]\ncables: ["s/3 - leaf/6"]\n',
            ["ASY0081 s has 2 ports"],
        ),
    ],
)
def test_overrides_and_spares_are_held_against_the_rules(
    more: str, says: list[str], told: Callable[..., list[str]]
) -> None:
    assert told(FABRIC + more) == says


def test_a_line_that_is_no_cable_says_how_to_write_one(told: Callable[..., list[str]]) -> None:
    (found,) = told(FABRIC + 'cables: ["leaf/6 spine/7"]\n')
    assert "write DEVICE/PORT - DEVICE/PORT" in found


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("{kind: FabricDesign, name: net, rate: 4xNDR}", "a design without leaves and without cables"),
        ("{kind: FabricDesign, name: net, rate: 4xNDR, nodes: [n1]}", "nodes need leaves"),
        (FABRIC.replace("switch: {product: S, ports: 8}\n", ""), "leaves need switch"),
        (FABRIC.replace("rails: 1\n", ""), "leaves need rails"),
        (('{kind: FabricDesign, name: net, rate: 4xNDR, cables: ["0x0000000000000001/1 - 0x0000000000000002/1"], '
         "overrides: [{device: a, port: 1}]}"), "there are no rules to override"),
    ],
)  # fmt: skip
def test_half_of_the_rules_is_no_design(more: str, says: str, told: Callable[..., list[str]]) -> None:
    assert any(one.startswith("ASY0084") and says in one for one in told(more))


def test_a_design_may_list_every_cable_and_no_rule(told: Callable[..., list[str]]) -> None:
    cable = "0x0000000000000001/1 - 0x0000000000000002/1"
    assert told(f'{{kind: FabricDesign, name: net, rate: 4xNDR, cables: ["{cable}"]}}\n') == []


LISTED_IN = FABRIC.replace('[{guid: "0x0000000000000001", rack: n1, u: 1}]', "{file: specs/leaves.csv}").replace(
    "name: leaf,", 'name: "leaf-r{rail}",'
)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("name,rack,u,guid\nleaf-r0,n1,1,0x1\n", ""),
        ("name,rack,u,guid\nspine,n1,2,0x2\n\n leaf-r0 , n1, 1, 0x1, and more\n", ""),
        (None, "specs/leaves.csv: cannot be read"),
        ("name,rack,guid\n", "the column u is missing"),
        ("name,rack,u,guid\nspine,n1,2,0x2\n", "no name of it follows the pattern leaf-r{rail}"),
        ("name,rack,u,guid\nleaf-r0,n1,1,guid\n", "leaf-r0: invalid literal"),
        ("name,rack,u,guid\nleaf-r1,n1,1,0x1\n", "leaf-r1 stands where leaf-r0 belongs"),
    ],
)
def test_switches_may_stand_in_a_file(lines: str | None, says: str, fleet_with: Write) -> None:
    files = {"specs/node.yaml": SPEC, "inventory/pool.yml": NODES, "specs/fabric.yaml": LISTED_IN}
    found = check_repository(fleet_with({**files, **({"specs/leaves.csv": lines} if lines else {})})).problems
    told = [f"{problem.file}: {problem.message}" for problem in found]
    assert any(says in one for one in told) if says else told == [], told


THREE = """
kind: FabricDesign
name: net
nodes: [n1, n2]
rails: 1
rate: 4xNDR
switch: {product: S, ports: 8}
leaves: {name: leaf, down: 1..2, up: 3..4, at: [{guid: "0x0000000000000001", rack: n1, u: 1}]}
spines: {name: "spine-{number}", group: rail, per_pair: 1, down: 1..1, up: 2..2, at: {
  count: 2, rack: "n{rack}", per_rack: 1, u: 5, guids: {first: "0x0000000000000010", step: 16}}}
cores: {name: "core-{plane}", per_pair: 1, at: {
  count: 2, rack: x, per_rack: 2, u: 1, guids: ["0x0000000000000030", "0x0000000000000040"]}}
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", []),
        ("up: 2..2", "up: 2..3", ["ASY0084 1 cores a plane × 1 cables do not use"]),
        ("down: 1..1", "down: 1..3", ["ASY0080 spines: the ports of `down` and `up` overlap"]),
        ("per_pair: 1, down: 1..1, up: 2..2", "per_pair: 1, up: 2..2, oversubscription: 2", ["ASY0083 net: 400 Gb/s"]),
        ("u: 5", "u: 1", ["ASY0085 place n1 U1 is given twice"]),
        ("rack: x", 'rack: "x{unit}"', ["ASY0004 cores.at: rack: String should match"]),
        ("count: 2, rack: x", "count: 3, rack: x", ["ASY0004 cores.at: guids: 2 GUIDs for 3 switches"]),
        ("0000000000000040", "00000000000000a1", ["ASY0085 the switch has the GUID 0x00000000000000a1 of an adapter"]),
        ("rails: 1", "rails: 1\nspares: [{device: core-2, ports: 1..2}]",
         ["ASY0080 port 1 of core-2 must stay free, but has a cable"]),
    ],
)  # fmt: skip
def test_three_tiers_are_held_to_the_same_rules(
    old: str, new: str, says: list[str], told: Callable[..., list[str]]
) -> None:
    found = told(THREE.replace(old, new) if old else THREE)
    assert len(found) == len(says), found
    assert all(one.startswith(said) for one, said in zip(found, says, strict=True)), found
