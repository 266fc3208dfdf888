"""The texts of the smallest fleet, and what a case is made of."""

from __future__ import annotations

from typing import NamedTuple

from tests.support.places import SMALLEST

POOL = (SMALLEST / "inventory/pool.yml").read_text()
NODE = (SMALLEST / "specs/node.yaml").read_text()
BUNDLE = (SMALLEST / "specs/bundle.yaml").read_text()
POLICY = (SMALLEST / "specs/policy.yaml").read_text()
FAULTS = (SMALLEST / "specs/faults.yaml").read_text()
CHECKS = (SMALLEST / "specs/checks.yaml").read_text()
SUITE = (SMALLEST / "suites/test_heat.py").read_text()
FABRIC = """
kind: FabricDesign
name: net
nodes: [n1, n2]
rails: 1
rate: 4xNDR
switch: {product: S, ports: 8}
leaves: {name: leaf, down: 1..2, up: 3..4, at: [{guid: "0x0000000000000001", rack: n1, u: 1}]}
spines: {name: spine, per_pair: 2, at: [{guid: "0x0000000000000002", rack: n1, u: 2}]}
"""


class Link(str):
    """A file of a case that is a link to this target."""

    __slots__ = ()


class Case(NamedTuple):
    """What changes in the smallest fleet to trigger a code, where it is said, and what is close but right."""

    wrong: dict[str, str | None]
    right: dict[str, str | None]
    where: str


def pool(old: str, new: str) -> dict[str, str | None]:
    """Return the inventory with one thing replaced, which must be there."""
    return replaced("inventory/pool.yml", POOL, old, new)


def replaced(file: str, text: str, old: str, new: str) -> dict[str, str | None]:
    """Return a file with one thing replaced, which must be there."""
    assert old in text
    return {file: text.replace(old, new, 1)}
