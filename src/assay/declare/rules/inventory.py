"""Nodes that contradict each other or their spec, or whose names and addresses other programs misread."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, ip_address

from assay.declare.check import FilePosition, RuleFinding, rule
from assay.declare.declared_hosts import HostDeclaration
from assay.declare.group_variables import InventoryHost, VariableLayer
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import format_few_names
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.node_settings import NodeVariables

HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9][A-Za-z0-9_-]{0,62})*", re.ASCII
)
"""RFC 1123, section 2.1, with `_`, which Slurm and Ansible allow too."""
POOL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
RESERVED_POOLS = ("all", "ungrouped")
PLAIN_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}", re.ASCII)
NUMBERS = re.compile(r"(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+))*\.?", re.IGNORECASE | re.ASCII)
"""What inet_aton(3) reads as an IPv4 address, in whichever base and with however many parts."""
ADDRESS_WITH_PORT = re.compile(
    r"(?:\[(?P<v6>[\w.:%]+)\](?::(?P<v6_port>\d*))?|(?P<name>[\w.-]+):(?P<port>\d*))", re.ASCII
)
"""An address as a URL writes it: `[fd00::1]`, `[fd00::1]:8443`, `10.1.0.7:8443`."""
FIRST_MULTICAST = 224
ADDRESS = re.compile(r"[\w.:-]+")
"""What may be an address. Anything else is a Jinja template, or is refused by its own problem."""
ADDRESS_VARIABLES = ("bmc_address", "ansible_host")
Keys = Callable[[NodeVariables], Iterable[str]]
VARIABLE_NAMES = tuple(NodeVariables.model_fields)


@rule("ASY0234", "an address that can be read in two ways")
def ambiguous_address(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """10.20.0.012 is 10.20.0.10 for some programs. A power cycle then hits the wrong machine."""
    for host in draft.hosts:
        for variable in ADDRESS_VARIABLES:
            written = host.variables.get(variable)
            if isinstance(written, str) and written and (fix := find_address_fix(written)):
                message = f"{host.name}: {variable} {written} is not in the form that every program reads alike"
                yield RuleFinding(host.find_position(variable), message, fix)


@rule("ASY0235", "a host name that is none")
def bad_host_name(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Schedulers, shells and files take such a name for something else."""
    for host in draft.hosts:
        if not HOST_NAME.fullmatch(host.name):
            fix = "use letters a to z, digits, - and _, with dots between parts"
            yield RuleFinding(host.find_position(), f"{host.name!r} is no host name", fix)


@rule("ASY0236", "a pool name that is none")
def bad_pool_name(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Ansible puts every host into `all`, and hosts without a group into `ungrouped`. Limits count per pool."""
    pools: dict[str, list[HostDeclaration]] = {}
    for host in draft.hosts:
        pools.setdefault(host.pool, []).append(host)
    for pool, hosts in pools.items():
        if pool in RESERVED_POOLS or not POOL_NAME.fullmatch(pool):
            place = hosts[0].find_position("pool") if hosts[0].variables.get("pool") else hosts[0].find_position()
            message = f"{pool!r} is no name of a pool: {format_few_names([host.name for host in hosts])}"
            yield RuleFinding(place, message, "list the nodes below a group with a name of letters, digits, - and _")


@rule("ASY0030", "two nodes share a serial number")
def shared_serial(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """History and RMA follow the serial number, not the name."""
    yield from _shared(
        draft, {"serial_number": lambda node: ["".join(node.serial_number.split()).upper()]}, "serial number {}"
    )


@rule("ASY0031", "two nodes share a BMC address")
def shared_bmc(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A power cycle hits the wrong machine."""
    yield from _shared(draft, {"bmc_address": _list_bmcs}, "BMC address {}")


@rule("ASY0032", "an HCA's GUID is given twice")
def shared_guid(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A cable at this GUID belongs to two ports."""
    yield from _shared(draft, {"hca_guids": lambda node: node.hca_guids}, "HCA GUID {}")


@rule("ASY0033", "two nodes stand in the same place")
def shared_place(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A ticket sends a technician to the wrong machine."""
    yield from _shared(draft, {"u": lambda node: [f"{node.site} {node.rack} U{node.u}"]}, "place {}")


@rule("ASY0097", "two nodes share an agent's token")
def shared_token(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Each agent can report for the other's node."""
    yield from _shared(draft, {"agent_token": _list_tokens}, "{}")


@rule("ASY0038", "a MAC address or a port of a switch is given twice")
def shared_mac(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Two machines answer to one address, and get the same DHCP lease."""
    keys: dict[str, Keys] = {
        "mac": lambda node: [node.mac] if node.mac else [],
        "bmc_mac": lambda node: [node.bmc_mac] if node.bmc_mac else [],
        "node_network": lambda node: [*_list_links(node)],
    }
    yield from _shared(draft, keys, "{}")


def _list_links(node: NodeVariables) -> Iterator[str]:
    """Yield the MAC addresses and ports that only the node's network declares."""
    for link in node.node_network.ethernets.values() if node.node_network else ():
        if link.mac and link.mac.lower() != node.mac:
            yield link.mac.lower()
        if link.circuit_id or link.remote_id:
            yield f"port {link.circuit_id} {link.remote_id}".rstrip()


@lru_cache(maxsize=4096)
def normalize_address(written: str) -> str:
    """Return the one form of an address that equal addresses share: of IPv4, IPv6 or a host name."""
    if PLAIN_IPV4.fullmatch(written):
        return written
    address = _parse_address(written)
    return str(address) if address else written.lower().rstrip(".")


def _parse_address(written: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(written)
    except ValueError:
        return None


def find_address_fix(written: str) -> str:
    """Return how to write an address that is not in its one form, "" if it is."""
    if PLAIN_IPV4.fullmatch(written):
        return "" if 0 < int(written.partition(".")[0]) < FIRST_MULTICAST else "write the machine's own address"
    if with_port := ADDRESS_WITH_PORT.fullmatch(written):
        port = with_port["port"] or with_port["v6_port"]
        plain = f"write {with_port['name'] or with_port['v6']}"
        return f"{plain}, and {port} as bmc_port or ansible_port" if port else plain
    if not ADDRESS.fullmatch(written):
        return ""
    if NUMBERS.fullmatch(written):
        return "write four numbers of 0 to 255, without leading zeros"
    address = _parse_address(written)
    if address is None and written.count(":") > 1:
        return "write an IPv6 address as fd00::1"
    if address and (address.is_unspecified or address.is_multicast or address.is_link_local):
        return "write the machine's own address, which is not of one link only"
    normal = normalize_address(written)
    return f"write {normal}" if written != normal else ""


def _list_tokens(node: NodeVariables) -> list[str]:
    """Return a text for each reference to a token, which may be shown and compared: of a vault's text, its digest."""
    texts = []
    for reference in node.agent_token:
        ((place, value),) = reference.model_dump(exclude_unset=True).items()
        texts.append(f"agent_token {place} {sha256(value.encode()).hexdigest()[:12] if reference.vault else value}")
    return texts


def _list_bmcs(node: NodeVariables) -> list[str]:
    address = f"{normalize_address(node.bmc_address)}:{node.bmc_port}"
    return [f"{address} {node.bmc_system}".rstrip()] if node.bmc_address else []


def _shared(draft: RepositoryDraft, variables: Mapping[str, Keys], label: str) -> Iterator[RuleFinding]:
    """Find values of these variables that are given twice, by one node or by two. At most one finding per variable."""
    owners: dict[str, HostDeclaration] = {}
    for host in draft.hosts:
        if host.settings is None:
            continue
        for variable, keys in variables.items():
            for number, key in enumerate(keys(host.settings)):
                if (owner := owners.get(key)) is None:
                    owners[key] = host
                    continue
                other = "twice" if owner is host else f"by {owner.name} too"
                message = f"{host.name}: {label.format(key)} is given {other}"
                yield RuleFinding(host.find_position(variable, number), message, "correct one of the two")
                break


@rule("ASY0034", "a node in several pools")
def several_pools(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Limits count per pool, and a node must count once."""
    for host in draft.hosts:
        if len(host.pools) > 1 and host.settings and not host.settings.pool:
            message = f"{host.name} is listed by {' and '.join(host.pools)}"
            yield RuleFinding(host.find_position(), message, f"name its pool: `pool: {host.pools[0]}`")


@rule("ASY0035", "HCA GUIDs that do not match the spec")
def wrong_rail_count(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The place of a GUID in the list says which rail it is."""
    specs = draft.specs_of_model(NodeSpec)
    for host in draft.hosts:
        spec = specs.get(host.settings.node_spec) if host.settings else None
        count = len(host.settings.hca_guids) if host.settings else 0
        if spec is not None and count != len(spec.hcas):
            message = f"{host.name} lists {count} hca_guids, but {spec.name} has {len(spec.hcas)} HCAs"
            yield RuleFinding(host.find_position("hca_guids"), message, "list one GUID per HCA, in rail order")


@rule("ASY0237", "a node outside of its fabric's design", needs=(FabricDesign,))
def node_outside_design(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The scan does not know where the node's cables belong, and every check of its links ends as an error."""
    designs = draft.specs_of_model(FabricDesign)
    members = {name: _list_members(design) for name, design in designs.items() if design.nodes}
    outside: dict[FilePosition, list[HostDeclaration]] = {}
    for host in draft.hosts:
        fabric = host.settings.fabric if host.settings else None
        if fabric in members and host.settings and members[fabric].isdisjoint((host.name, *host.settings.hca_guids)):
            outside.setdefault(host.find_position("fabric"), []).append(host)
    for place, hosts in outside.items():
        names = format_few_names([host.name for host in hosts])
        message = f"the design {hosts[0].variables['fabric']} does not list {names}"
        yield RuleFinding(place, message, "add them to the `nodes` of the design, or correct `fabric`")


def _list_members(design: FabricDesign) -> set[str]:
    """Return the names of a design's nodes, and the GUIDs of adapters at listed cables and among its devices."""
    ends = [end for cable in design.cables for _, end in cable.ends]
    named = [end.device.partition(" ")[0] for end in ends] + [end.guid_or_device_guid or "" for end in ends]
    devices = [name for device in design.devices for name in (device.node, device.guid)]
    return {*design.node_names(), *named, *devices}


@rule("ASY0238", "HCAs without a fabric")
def adapters_without_fabric(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """No design says where their cables belong, so the node never passes the checks of its links."""
    specs = draft.specs_of_model(NodeSpec)
    without: dict[FilePosition, list[HostDeclaration]] = {}
    for host in draft.hosts:
        if host.settings and host.settings.fabric is None:
            spec = specs.get(host.settings.node_spec)
            if spec is not None and spec.hcas:
                without.setdefault(host.find_position("node_spec"), []).append(host)
    for place, hosts in without.items():
        names = format_few_names([host.name for host in hosts])
        message = f"{names}: {hosts[0].variables['node_spec']} has HCAs, but no `fabric` is given"
        fix = "name the FabricDesign that cables them, `fabric: NAME`; or write `hcas: []` into the node spec"
        yield RuleFinding(place, message, fix)


@rule("ASY0036", "a variable that looks misspelt", severity="warning")
def misspelt_variable(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Ansible accepts any name, so it does not report the mistake."""
    seen = set()
    for host in draft.hosts:
        for name in host.variables:
            near = _find_near_name(str(name))
            place = host.find_position(name) if near else None
            if place is not None and place not in seen and near not in host.variables:
                seen.add(place)
                yield RuleFinding(place, f"assay reads no variable {name}", f"did you mean {near}?")


@rule("ASY0037", "a node described twice")
def conflicting_variables(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The order of the files decides which description counts."""
    twice: dict[FilePosition, tuple[list[str], str, VariableLayer]] = {}
    for host in draft.inventory.hosts.values():
        for first, later, variable in _overlaps(host) if len(host.inline) > 1 else ():
            twice.setdefault(_layer_position(later), ([], variable, first))[0].append(host.name)
    for place, (names, variable, first) in twice.items():
        where = first.document.where(first.path)
        message = f"{format_few_names(names)}: {variable} is given in {where} too"
        yield RuleFinding(place, message, "rename the node, or describe it in one place")


@rule("ASY0150", "two ways to trust a BMC")
def conflicting_bmc_trust(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Only one of the two counts, and the other misleads its reader."""
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
