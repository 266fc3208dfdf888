"""Nodes that contradict each other or their spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from hashlib import sha256

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.groups import Host, Layer
from assay.fleet.rules.book import Finding, Place, rule
from assay.fleet.rules.names import few
from assay.fleet.variables import NodeVariables
from assay.model.nodespec import NodeSpec

KNOWN = tuple(NodeVariables.model_fields)
Keys = Callable[[NodeVariables], Iterable[str]]


@rule("ASY0030", "two nodes share a serial number", why="History and RMA follow the serial number, not the name.")
def shared_serial(draft: Draft) -> Iterator[Finding]:
    """Find serial numbers given twice."""
    yield from _shared(draft, {"serial_number": lambda node: [node.serial_number]}, "serial number {}")


@rule("ASY0031", "two nodes share a BMC address", why="A power cycle would hit the wrong machine.")
def shared_bmc(draft: Draft) -> Iterator[Finding]:
    """Find BMC addresses (with port) given twice."""
    yield from _shared(draft, {"bmc_address": _bmc}, "BMC address {}")


@rule("ASY0032", "an HCA's GUID is given twice", why="A cable found at the GUID would belong to two ports.")
def shared_guid(draft: Draft) -> Iterator[Finding]:
    """Find HCA GUIDs given twice."""
    yield from _shared(draft, {"hca_guids": lambda node: node.hca_guids}, "HCA GUID {}")


@rule("ASY0033", "two nodes stand in the same place", why="A ticket would send hands to the wrong machine.")
def shared_place(draft: Draft) -> Iterator[Finding]:
    """Find rack units given twice."""
    yield from _shared(draft, {"u": lambda node: [f"{node.site} {node.rack} U{node.u}"]}, "place {}")


@rule("ASY0097", "two nodes share an agent's token", why="Each agent could speak for the other's node.")
def shared_token(draft: Draft) -> Iterator[Finding]:
    """Find references to one token that several nodes give."""
    yield from _shared(draft, {"agent_token": _token}, "{}")


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


@rule("ASY0037", "a node described twice", why="Which description counts hangs on the order of files.")
def described_twice(draft: Draft) -> Iterator[Finding]:
    """Find hosts of whose variables some stand in two entries of the inventory, so that one entry hides the other."""
    again: dict[Place, tuple[list[str], str, Layer]] = {}
    for host in draft.inventory.hosts.values():
        for first, later, variable in _overlaps(host) if len(host.inline) > 1 else ():
            again.setdefault(_of(later), ([], variable, first))[0].append(host.name)
    for place, (names, variable, first) in again.items():
        where = first.document.where(first.path)
        said = f"{few(names)}: {variable} is given in {where} too"
        yield Finding(place, said, "rename the node, or describe it in one place")


@rule("ASY0038", "a MAC address is given twice", why="Two machines would answer to one address, and to one lease.")
def shared_mac(draft: Draft) -> Iterator[Finding]:
    """Find MAC addresses of nodes and BMCs given twice, however they are written."""
    yield from _shared(
        draft, {"mac": lambda node: _mac(node.mac), "bmc_mac": lambda node: _mac(node.bmc_mac)}, "MAC {}"
    )


@rule("ASY0150", "two ways to trust a BMC", why="Only one could decide, and who reads the other would be deceived.")
def two_trusts(draft: Draft) -> Iterator[Finding]:
    """Find nodes with both an authority and a pinned certificate for their BMC."""
    for host in draft.hosts:
        if host.read and host.read.bmc_ca and host.read.bmc_fingerprint:
            said = f"{host.name} has both bmc_ca and bmc_fingerprint"
            yield Finding(host.place("bmc_fingerprint"), said, "keep the one that is meant")


def _overlaps(host: Host) -> Iterator[tuple[Layer, Layer, str]]:
    """Yield pairs of entries that describe one host, and a variable that both give."""
    given: dict[str, Layer] = {}
    for layer in host.inline:
        common = next((name for name in layer.variables if name in given and _of(given[name]) != _of(layer)), None)
        if common is not None:
            yield given[common], layer, common
        given.update(dict.fromkeys(layer.variables, layer))


def _of(layer: Layer) -> Place:
    return (layer.document.file, *layer.document.place(layer.path))


@lru_cache(maxsize=1024)
def _meant(name: str) -> str:
    if name in KNOWN or name.startswith("ansible_"):
        return ""
    return next(iter(get_close_matches(name, KNOWN, n=1, cutoff=0.85)), "")


def _token(node: NodeVariables) -> list[str]:
    """Return what the reference says, in a form that may be shown."""
    reference = node.agent_token
    if reference is None:
        return []
    ((where, what),) = reference.model_dump(exclude_unset=True).items()
    return [f"agent_token {where} {sha256(what.encode()).hexdigest()[:12] if reference.vault else what}"]


def _bmc(node: NodeVariables) -> list[str]:
    return [f"{node.bmc_address}:{node.bmc_port}"] if node.bmc_address else []


def _mac(address: str | None) -> list[str]:
    return [address.lower().replace("-", ":")] if address else []


def _shared(draft: Draft, variables: Mapping[str, Keys], called: str) -> Iterator[Finding]:
    """Find nodes of which one of these variables gives what one of them has given before, one finding a variable."""
    owners: dict[str, HostEntry] = {}
    for host in draft.hosts:
        if host.read:
            mine: set[str] = set()
            for variable, keys in variables.items():
                twice = next((key for key in keys(host.read) if _taken(key, host, owners, mine)), None)
                if twice is not None:
                    other = "twice" if owners[twice] is host else f"by {owners[twice].name} too"
                    said = f"{host.name}: {called.format(twice)} is given {other}"
                    yield Finding(host.place(variable), said, "correct one of the two")


def _taken(key: str, host: HostEntry, owners: dict[str, HostEntry], mine: set[str]) -> bool:
    """Whether another host, or this one, has given the key before; now this one has."""
    taken = owners.setdefault(key, host) is not host or key in mine
    mine.add(key)
    return taken
