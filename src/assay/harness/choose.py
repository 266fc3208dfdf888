"""Which nodes the options choose, and which subjects a check's arguments ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
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


@lru_cache(8)
def parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return what a check asks for. The one that is collected is asked for several times."""
    return inspect.signature(function).parameters


def kind_of(function: Callable[..., Any]) -> str:
    """Return the kind of subject that a check asks for, "" when it asks for none."""
    arguments = parameters(function)
    return next((kind for argument, kind in ASKS.items() if argument in arguments), "")


def chosen(fleet: Fleet, config: pytest.Config) -> Selection:
    """Return the selection of --node, --pool, --rack and --shard. Raises Trouble for a name that does not exist."""
    names = _names(config.getoption("--node"), fleet.nodes, "node")
    pools = _names(config.getoption("--pool"), (node.pool for node in fleet.nodes.values()), "pool")
    racks = _names(config.getoption("--rack"), (node.rack for node in fleet.nodes.values()), "rack")
    nodes = tuple(
        name
        for name in ([name for name in fleet.nodes if name in names] if names else fleet.nodes)
        if (not pools or fleet.nodes[name].pool in pools) and (not racks or fleet.nodes[name].rack in racks)
    )
    share, shares = _shard(config.getoption("--shard") or "1/1")
    return Selection(fleet, nodes, share, shares)


def _names(given: list[str], known: Iterable[str], what: str) -> set[str]:
    wanted = {name for text in given for name in text.split(",") if name}
    existing = set(known) if wanted else set()
    for name in sorted(wanted - existing):
        near = get_close_matches(name, existing, n=3)
        fix = f"did you mean {' or '.join(near)}?" if near else f"see `assay status` for every {what}"
        raise Trouble(f"no {what} {name!r} in the inventory", fix=fix)
    return wanted


def _shard(text: str) -> tuple[int, int]:
    share, _, shares = text.partition("/")
    if share.isdecimal() and shares.isdecimal() and 1 <= int(share) <= int(shares):
        return int(share), int(shares)
    raise Trouble(f"--shard {text} is no share", fix="write it as 2/4: the second of four")
