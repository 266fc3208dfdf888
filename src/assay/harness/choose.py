"""Which nodes the options choose, and which subjects a check's arguments ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import pytest

from assay.harness.declared import PARTS, Selection
from assay.model.errors import Trouble
from assay.model.fleet import Fleet

# The first of these among a check's arguments decides what it is repeated over.
ASKS = {
    **{part: part for part in PARTS},
    "link": "hca",
    "node": "node",
    "bmc": "node",
    "rack": "rack",
    "whole_rack": "whole_rack",
}
ASKS |= {"switch": "switch", "rail": "rail"}
ASKS |= {"link_week": "hca", "switch_week": "switch", "rail_week": "rail", "fabric_week": "fabric"}
ASKS |= {"fabric": "fabric", "spec": "node", "limits": "node", "bundle": "node", "profile": "node"}


def kind_of(function: Callable[..., Any]) -> str:
    """Return the kind of subject that a check asks for, "" when it asks for none."""
    arguments = inspect.signature(function).parameters
    return next((kind for argument, kind in ASKS.items() if argument in arguments), "")


def chosen(fleet: Fleet, config: pytest.Config) -> Selection:
    """Return the selection of --node, --pool, --rack and --shard. Raises Trouble for a name that does not exist."""
    names = _names(config.getoption("--node"), fleet.nodes, "node")
    pools = _names(config.getoption("--pool"), (node.pool for node in fleet.nodes.values()), "pool")
    racks = _names(config.getoption("--rack"), (node.rack for node in fleet.nodes.values()), "rack")
    nodes = tuple(
        node.name
        for node in fleet.nodes.values()
        if (not names or node.name in names) and (not pools or node.pool in pools) and (not racks or node.rack in racks)
    )
    share, shares = _shard(config.getoption("--shard") or "1/1")
    return Selection(fleet, nodes, share, shares)


def _names(given: list[str], known: Iterable[str], what: str) -> set[str]:
    wanted, existing = {name for text in given for name in text.split(",") if name}, set(known)
    for name in sorted(wanted - existing):
        near = get_close_matches(name, existing, n=3)
        fix = f"did you mean {' or '.join(near)}?" if near else f"see `assay status` for every {what}"
        raise Trouble(f"no {what} {name!r} in the inventory", fix=fix)
    return wanted


def _shard(text: str) -> tuple[int, int]:
    share, _, shares = text.partition("/")
    if share.isdigit() and shares.isdigit() and 1 <= int(share) <= int(shares):
        return int(share), int(shares)
    raise Trouble(f"--shard {text} is no share", fix="write it as 2/4: the second of four")
