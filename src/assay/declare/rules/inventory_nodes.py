"""Nodes of the inventory that contradict each other or their spec."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from assay.declare.declared_hosts import HostDeclaration
from assay.declare.group_variables import InventoryHost, VariableLayer
from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import FilePosition, RuleFinding, rule
from assay.declare.rules.dangling_names import format_few_names
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.node_settings import NodeVariables

VARIABLE_NAMES = tuple(NodeVariables.model_fields)


@rule("ASY0034", "a node in several pools", why="Limits count per pool, and a node must count once.")
def several_pools(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find hosts that several groups list, without the variable `pool`."""
    for host in draft.hosts:
        if len(host.pools) > 1 and host.settings and not host.settings.pool:
            message = f"{host.name} is listed by {' and '.join(host.pools)}"
            yield RuleFinding(host.find_position(), message, f"name its pool: `pool: {host.pools[0]}`")


@rule("ASY0035", "HCA GUIDs that do not match the spec", why="The place of a GUID in the list says which rail it is.")
def wrong_rail_count(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes with more or fewer GUIDs than their spec has HCAs."""
    specs = draft.specs_of_model(NodeSpec)
    for host in draft.hosts:
        spec = specs.get(host.settings.node_spec) if host.settings else None
        count = len(host.settings.hca_guids) if host.settings else 0
        if spec is not None and count != len(spec.hcas):
            message = f"{host.name} lists {count} hca_guids, but {spec.name} has {len(spec.hcas)} HCAs"
            yield RuleFinding(host.find_position("hca_guids"), message, "list one GUID per HCA, in rail order")


@rule(
    "ASY0237",
    "a node outside of its fabric's design",
    why="The scan does not know where the node's cables belong, and every check of its links ends as an error.",
    needs=(FabricDesign,),
)
def node_outside_design(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes whose `fabric` is a design without them: neither in its `nodes` nor at an end of a listed cable."""
    designs = draft.specs_of_model(FabricDesign)
    members = {name: _list_members(design) for name, design in designs.items() if design.nodes}
    found: dict[FilePosition, list[HostDeclaration]] = {}
    for host in draft.hosts:
        fabric = host.settings.fabric if host.settings else None
        if fabric in members and host.settings and members[fabric].isdisjoint((host.name, *host.settings.hca_guids)):
            found.setdefault(host.find_position("fabric"), []).append(host)
    for place, hosts in found.items():
        names = format_few_names([host.name for host in hosts])
        message = f"the design {hosts[0].variables['fabric']} does not list {names}"
        yield RuleFinding(place, message, "add them to the `nodes` of the design, or correct `fabric`")


def _list_members(design: FabricDesign) -> set[str]:
    """Return the names of a design's nodes, and the GUIDs of adapters at listed cables and among its devices."""
    ends = [end for cable in design.cables for _, end in cable.ends]
    named = [end.device.partition(" ")[0] for end in ends] + [end.guid_or_device_guid or "" for end in ends]
    devices = [name for device in design.devices for name in (device.node, device.guid)]
    return {*design.node_names(), *named, *devices}


@rule(
    "ASY0238",
    "HCAs without a fabric",
    why="No design says where their cables belong, so the node never passes the checks of its links.",
)
def adapters_without_fabric(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes without a `fabric` whose spec has HCAs, once for each place that names the spec."""
    specs = draft.specs_of_model(NodeSpec)
    found: dict[FilePosition, list[HostDeclaration]] = {}
    for host in draft.hosts:
        if host.settings and host.settings.fabric is None:
            spec = specs.get(host.settings.node_spec)
            if spec is not None and spec.hcas:
                found.setdefault(host.find_position("node_spec"), []).append(host)
    for place, hosts in found.items():
        names = format_few_names([host.name for host in hosts])
        message = f"{names}: {hosts[0].variables['node_spec']} has HCAs, but no `fabric` is given"
        fix = "name the FabricDesign that cables them, `fabric: NAME`; or write `hcas: []` into the node spec"
        yield RuleFinding(place, message, fix)


@rule(
    "ASY0036",
    "a variable that looks misspelt",
    why="Ansible accepts any name, so it does not report the mistake.",
    severity="warning",
)
def misspelt_variable(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find variables with a name close to one that assay reads."""
    seen = set()
    for host in draft.hosts:
        for name in host.variables:
            near = _find_near_name(str(name))
            place = host.find_position(name) if near else None
            if place is not None and place not in seen and near not in host.variables:
                seen.add(place)
                yield RuleFinding(place, f"assay reads no variable {name}", f"did you mean {near}?")


@rule("ASY0037", "a node described twice", why="The order of the files decides which description counts.")
def conflicting_variables(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find hosts with a variable in two entries of the inventory, so that one entry hides the other."""
    found: dict[FilePosition, tuple[list[str], str, VariableLayer]] = {}
    for host in draft.inventory.hosts.values():
        for first, later, variable in _overlaps(host) if len(host.inline) > 1 else ():
            found.setdefault(_layer_position(later), ([], variable, first))[0].append(host.name)
    for place, (names, variable, first) in found.items():
        where = first.document.where(first.path)
        message = f"{format_few_names(names)}: {variable} is given in {where} too"
        yield RuleFinding(place, message, "rename the node, or describe it in one place")


@rule("ASY0150", "two ways to trust a BMC", why="Only one of the two counts, and the other misleads its reader.")
def conflicting_bmc_trust(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes with both a certificate authority and a pinned certificate for their BMC."""
    for host in draft.hosts:
        if host.settings and host.settings.bmc_ca and host.settings.bmc_fingerprint:
            message = f"{host.name} has both bmc_ca and bmc_fingerprint"
            yield RuleFinding(host.find_position("bmc_fingerprint"), message, "keep one of the two")


def _overlaps(host: InventoryHost) -> Iterator[tuple[VariableLayer, VariableLayer, str]]:
    """Yield pairs of entries that describe one host, and a variable that both have."""
    given: dict[str, VariableLayer] = {}
    for layer in host.inline:
        place = _layer_position(layer)
        common = next(
            (name for name in layer.variables if name in given and _layer_position(given[name]) != place), None
        )
        if common is not None:
            yield given[common], layer, common
        given.update(dict.fromkeys(layer.variables, layer))


def _layer_position(layer: VariableLayer) -> FilePosition:
    return (layer.document.file, *layer.document.place(layer.path))


@lru_cache(maxsize=1024)
def _find_near_name(name: str) -> str:
    if name in VARIABLE_NAMES or name.startswith("ansible_"):
        return ""
    return next(iter(get_close_matches(name, VARIABLE_NAMES, n=1, cutoff=0.85)), "")
