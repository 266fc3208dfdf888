"""Leaves with several ranges of ports to nodes, and unlike leaves, become rules; what breaks them is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.learn.draft import describe_exceptions, draft_rules
from assay.fabric.learn.judged_design import JudgedDesign, judge_discovery
from assay.model.fleet import Fleet
from assay.model.specs.fabric.adapters import HostAdapter
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.fabric_design import FabricDesign

Ports = tuple[list[int], list[int]]
SPLIT: Ports = ([*range(1, 13), *range(25, 37)], [*range(13, 25)])
HIGH: Ports = ([*range(13, 37)], [*range(1, 13)])
PER_SPINE = 6
FABRICS = {"alike": [SPLIT] * 4, "half": [SPLIT, SPLIT, HIGH, HIGH], "one other": [SPLIT, HIGH, SPLIT, SPLIT]}
MOST_HIGH = [HIGH, HIGH, SPLIT, HIGH]


def discover(leaves: list[Ports]) -> tuple[list[DiscoveredCable], dict[str, DiscoveredDevice], dict[str, HostAdapter]]:
    """Return four leaves of 24 nodes with two spines, as a public EDR fabric has them."""
    devices = {f"0x{0x5000 + n:016x}": f"spine{n + 1}" for n in range(2)}
    spines, hosts, cables = list(devices), dict[str, HostAdapter](), list[DiscoveredCable]()
    devices |= {f"0x{0x1000 + n:016x}": f"leaf{n + 1}" for n in range(len(leaves))}
    for number, (down, up) in enumerate(leaves):
        leaf = f"0x{0x1000 + number:016x}"
        for port in down:
            guid = f"0x{0x9000 + len(hosts):016x}"
            hosts[guid] = HostAdapter(f"node{len(hosts) + 1:03}", "mlx5_0")
            cables.append(DiscoveredCable(PortId(guid, 1), PortId(leaf, port), "4xEDR"))
        for at, port in enumerate(up):
            spine, place = divmod(at, PER_SPINE)
            far = PortId(spines[spine], number * PER_SPINE + place + 1)
            cables.append(DiscoveredCable(PortId(leaf, port), far, "4xEDR"))
    every = {guid: DiscoveredDevice(guid, "switch", 36, name) for guid, name in devices.items()}
    every |= {guid: DiscoveredDevice(guid, "hca", 1, f"{host.host} mlx5_0") for guid, host in hosts.items()}
    return cables, every, hosts


def learn(leaves: list[Ports], *cables: DiscoveredCable, without: tuple[int, ...] = ()) -> JudgedDesign:
    """Learn from the cables of these leaves, without some, and with others."""
    every, devices, hosts = discover(leaves)
    left = [cable for at, cable in enumerate(every) if at not in without]
    return judge_discovery(FabricDiscovery([*left, *cables], devices), "compute", Fleet(Path(), {}), hosts)


@pytest.mark.parametrize("leaves", [*FABRICS.values(), MOST_HIGH], ids=[*FABRICS, "most high"])
def test_every_cable_follows_the_rules_and_the_draft_reads_as_they_are(leaves: list[Ports]) -> None:
    judged = learn(leaves)
    assert (judged.comparison.matching, judged.comparison.expected, judged.exceptions) == (144, 144, [])
    tier = judged.design.leaves
    assert tier is not None
    text = {"1..12,25..36": SPLIT, "13..36": HIGH}
    assert [text[leaf.down or tier.down] for leaf in tier.at] == leaves
    cables, devices, _ = discover(leaves)
    read = FabricDesign.model_validate(yaml.safe_load(draft_rules(judged, FabricDiscovery(cables, devices))))
    again = compile_topology(read, judged_fleet(judged))
    assert compare_cabling(again, FabricDiscovery(cables, devices)).matching == 144


def judged_fleet(judged: JudgedDesign) -> Fleet:
    return Fleet(Path(), {}, designs={judged.design.name: judged.design})


@pytest.mark.parametrize("leaves", FABRICS.values(), ids=FABRICS)
def test_a_fault_of_the_first_dump_is_an_exception_and_not_the_design(leaves: list[Ports]) -> None:
    cables, _, _ = discover(leaves)
    first, second = cables[3], cables[40]
    crossed = (DiscoveredCable(first.a, second.b, "4xEDR"), DiscoveredCable(second.a, first.b, "4xEDR"))
    (swap,) = describe_exceptions(learn(leaves, *crossed, without=(3, 40)))
    assert swap.startswith("swap: 2 cables are exchanged")
    (trunk,) = describe_exceptions(learn(leaves, without=(26,)))
    assert trunk.startswith("missing: no link between leaf1")
    (moved,) = describe_exceptions(learn(leaves, crossed[0], without=(3, 40)))
    assert moved.startswith("moved: the cable from node004")


def test_only_a_leaf_has_ports_of_its_own() -> None:
    wrong = rules()
    wrong["spines"]["at"][0]["down"] = "1..2"
    with pytest.raises(ValueError, match="is no leaf"):
        FabricDesign.model_validate(wrong)


def rules(**leaf: str) -> dict[str, Any]:
    """Return rules of one leaf, with ports of its own."""
    at = [{"guid": "0x0000000000001000", "rack": "r1", "u": 1, **leaf}]
    spine = {"guid": "0x0000000000005000", "rack": "r1", "u": 2}
    return {
        "kind": "FabricDesign",
        "name": "compute",
        "rate": "4xEDR",
        "nodes": ["n01..n04"],
        "rails": 1,
        "switch": {"product": "SB7800", "ports": 36},
        "leaves": {"name": "leaf{index}", "down": "1..2,5..6", "up": "3..4", "at": at},
        "spines": {"name": "spine{index}", "per_pair": 2, "at": [spine]},
        "oversubscription": 2,
    }


@pytest.mark.parametrize(
    ("leaf", "reason"),
    [
        ({"down": "3..6"}, "overlap"),
        ({"down": "1..2,36..37"}, "ends at 37"),
        ({"down": "1..3"}, "as many ports"),
        ({"up": "7..9"}, "as many ports"),
        ({"down": "1..2,2..3"}, "holds a port twice"),
    ],
)
def test_ports_that_cannot_be_are_refused(leaf: dict[str, str], reason: str) -> None:
    assert FabricDesign.model_validate(rules()).leaves is not None
    with pytest.raises(ValueError, match=reason):
        FabricDesign.model_validate(rules(**leaf))
