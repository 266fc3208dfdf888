"""Names that lead nowhere, and names that are given twice."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from importlib.metadata import entry_points

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.rules.book import Finding, rule
from assay.model.design import FabricDesign
from assay.model.firmware import FirmwareBundle
from assay.model.nodespec import NodeSpec
from assay.model.profile import ManagementProfile
from assay.model.spec import Spec


@rule("ASY0020", "two specs share a name", why="Whoever refers to the name gets one of them, and nobody sees which.")
def shared_names(draft: Draft) -> Iterator[Finding]:
    """Find specs of one kind with the same name."""
    for spec in draft.specs:
        first = draft.files[spec.key]
        if first is not spec:
            place = spec.place(("name",))
            taken = f"{spec.spec.kind} {spec.spec.name} is already given in {first.document.where(('name',))}"
            yield Finding(place, taken, "rename one of the two")


@rule("ASY0021", "a node spec that does not exist", why="A node that refers to no spec cannot be validated.")
def dangling_node_spec(draft: Draft) -> Iterator[Finding]:
    """Find nodes whose `node_spec` is no NodeSpec."""
    yield from _missing(draft, "node_spec", NodeSpec)


@rule("ASY0022", "a management profile that does not exist", why="Nobody could say what automation may do there.")
def dangling_profile(draft: Draft) -> Iterator[Finding]:
    """Find nodes whose `profile` is no ManagementProfile."""
    yield from _missing(draft, "profile", ManagementProfile)


@rule("ASY0023", "a fabric that does not exist", why="The node's cables could not be compared with any design.")
def dangling_fabric(draft: Draft) -> Iterator[Finding]:
    """Find nodes whose `fabric` is no FabricDesign."""
    yield from _missing(draft, "fabric", FabricDesign)


@rule("ASY0024", "a firmware bundle that does not exist", why="Zap would have nothing to bring the node to.")
def dangling_firmware(draft: Draft) -> Iterator[Finding]:
    """Find node specs whose `firmware` is no FirmwareBundle."""
    bundles = draft.names(FirmwareBundle)
    for spec in draft.of(NodeSpec).values():
        if spec.firmware not in bundles and draft.whole():
            place = draft.at(f"NodeSpec/{spec.name}", "firmware")
            yield Finding(place, f"there is no FirmwareBundle {spec.firmware}", nearest(spec.firmware, bundles))


@rule("ASY0025", "a fabric design names a node that is not there", why="Its cables would be missing for ever.")
def strange_fabric_node(draft: Draft) -> Iterator[Finding]:
    """Find nodes of a fabric design that the inventory does not have."""
    names = set(draft.inventory.hosts)
    for design in draft.of(FabricDesign).values() if draft.all_hosts_read else ():
        strange = [name for name in design.node_names() if name not in names]
        if strange:
            said = f"{design.name}: {few(strange)} not in the inventory"
            yield Finding(draft.at(f"FabricDesign/{design.name}", "nodes"), said, nearest(strange[0], names))


@rule("ASY0026", "a workloads adapter that is not installed", why="Nobody could tell whether the node is in use.")
def unknown_adapter(draft: Draft) -> Iterator[Finding]:
    """Find nodes whose `workloads` is no entry point of the group `assay.workloads`."""
    if any(host.read and host.read.workloads != "none" for host in draft.hosts):
        installed = {"none", *entry_points(group="assay.workloads").names}
        yield from _dangling(draft, "workloads", installed, "workloads adapter")


def nearest(name: str, known: Collection[str]) -> str:
    """Return the fix for a name that is not known."""
    near = get_close_matches(name, list(known), n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"there is {few(sorted(known))}" if known else "there is none yet: write one"


def few(names: list[str]) -> str:
    """Return some names of many, for a sentence."""
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _missing(draft: Draft, variable: str, kind: type[Spec]) -> Iterator[Finding]:
    """Yield variables that name no spec of a kind. A file that cannot be read may hold any of them."""
    if draft.whole():
        yield from _dangling(draft, variable, draft.names(kind), kind.__name__)


def _dangling(draft: Draft, variable: str, known: Collection[str], kind: str) -> Iterator[Finding]:
    """Yield one finding per wrong line, however many nodes take the variable from it."""
    lost: dict[tuple[str, int, int], list[HostEntry]] = {}
    for host in draft.hosts:
        if host.variables.get(variable) is not None and host.read and getattr(host.read, variable) not in known:
            lost.setdefault(host.place(variable), []).append(host)
    for place, hosts in lost.items():
        name = hosts[0].variables[variable]
        said = f"there is no {kind} {name}, which {few([host.name for host in hosts])} would use"
        yield Finding(place, said, nearest(name, known))
