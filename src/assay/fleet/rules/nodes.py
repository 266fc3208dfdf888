"""Nodes that contradict each other or their spec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import lru_cache

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.rules.book import Finding, rule
from assay.fleet.variables import NodeVariables
from assay.model.nodespec import NodeSpec

KNOWN = tuple(NodeVariables.model_fields)


@rule("ASY0030", "two nodes share a serial number", why="History and RMA follow the serial number, not the name.")
def shared_serial(draft: Draft) -> Iterator[Finding]:
    """Find serial numbers given twice."""
    yield from _shared(draft, "serial_number", lambda node: [node.serial_number], "serial number {}")


@rule("ASY0031", "two nodes share a BMC address", why="A power cycle would hit the wrong machine.")
def shared_bmc(draft: Draft) -> Iterator[Finding]:
    """Find BMC addresses (with port) given twice."""
    yield from _shared(draft, "bmc_address", _bmc, "BMC address {}")


@rule("ASY0032", "an HCA's GUID is given twice", why="A cable found at the GUID would belong to two ports.")
def shared_guid(draft: Draft) -> Iterator[Finding]:
    """Find HCA GUIDs given twice."""
    yield from _shared(draft, "hca_guids", lambda node: node.hca_guids, "HCA GUID {}")


@rule("ASY0033", "two nodes stand in the same place", why="A ticket would send hands to the wrong machine.")
def shared_place(draft: Draft) -> Iterator[Finding]:
    """Find rack units given twice."""
    yield from _shared(draft, "u", lambda node: [f"{node.site} {node.rack} U{node.u}"], "place {}")


@rule("ASY0034", "a node in several pools", why="Limits count per pool, and a node must count once.")
def several_pools(draft: Draft) -> Iterator[Finding]:
    """Find hosts that several groups list, without the variable `pool` to decide."""
    for host in draft.hosts:
        if len(host.pools) > 1 and host.read and not host.read.pool:
            said = f"{host.name} is listed by {' and '.join(host.pools)}"
            yield Finding(host.place(), said, f"say which is its pool: `pool: {host.pools[0]}`")


@rule("ASY0035", "HCA GUIDs that do not match the spec", why="Rails are found by the place of a GUID in the list.")
def wrong_rail_count(draft: Draft) -> Iterator[Finding]:
    """Find nodes with more or fewer GUIDs than their spec has HCAs."""
    specs = draft.of(NodeSpec)
    for host in draft.hosts:
        spec = specs.get(host.read.node_spec) if host.read else None
        if spec is not None and host.read and len(host.read.hca_guids) != len(spec.hcas):
            said = f"{host.name} lists {len(host.read.hca_guids)} hca_guids, but {spec.name} has {len(spec.hcas)} HCAs"
            yield Finding(host.place("hca_guids"), said, "list one GUID per HCA, in rail order")


@rule(
    "ASY0036",
    "a variable that looks misspelt",
    why="Ansible takes any name: a slip stays silent.",
    severity="warning",
)
def misspelt(draft: Draft) -> Iterator[Finding]:
    """Find variables that are almost, but not quite, one that assay reads."""
    seen = set()
    for host in draft.hosts:
        for name in host.variables:
            meant = _meant(str(name))
            place = host.place(name) if meant else None
            if place is not None and place not in seen and meant not in host.variables:
                seen.add(place)
                yield Finding(place, f"assay reads no variable {name}", f"did you mean {meant}?")


@lru_cache(maxsize=1024)
def _meant(name: str) -> str:
    if name in KNOWN or name.startswith("ansible_"):
        return ""
    return next(iter(get_close_matches(name, KNOWN, n=1, cutoff=0.85)), "")


def _bmc(node: NodeVariables) -> list[str]:
    return [f"{node.bmc_address}:{node.bmc_port}"] if node.bmc_address else []


def _shared(draft: Draft, variable: str, keys: Callable[[NodeVariables], list[str]], called: str) -> Iterator[Finding]:
    owners: dict[str, HostEntry] = {}
    for host in draft.hosts:
        mine: set[str] = set()
        for key in keys(host.read) if host.read else ():
            first = owners.setdefault(key, host)
            if first is not host or key in mine:
                other = "twice" if first is host else f"by {first.name} too"
                said = f"{host.name}: {called.format(key)} is given {other}"
                yield Finding(host.place(variable), said, "correct one of the two")
                break
            mine.add(key)
