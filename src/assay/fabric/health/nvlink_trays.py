"""Which tray of an NVLink rack is suspect, by the NVLinks of its GPUs that are down or count errors.

Each GPU has a link to each NVSwitch ASIC: a sick compute tray shows at its own GPUs, a sick switch tray at the links
that lead to it, of most nodes. Where they lead, the rack's last scan says by the ports' numbers; that NVML counts links
from 0 or 1 below these is not documented, so a tray is named if all sick links lead there by one of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.fabric.discovery import FabricDiscovery
from assay.model.evidence import EvidenceDocument
from assay.model.specs.fabric.nvlink_domain import DEVICES_PER_TRAY, NvlinkDomain, NvlinkPlace

SickLinks = Mapping[int, frozenset[int]]
"""The links of each GPU of a node that are down or count errors, by their numbers."""
COUNTERS = ("recoveries", "crc_errors")
UNTOLD = "which switch tray cannot be told"


def read_sick_links(evidence: EvidenceDocument, most: Mapping[str, float]) -> SickLinks | None:
    """Return the sick links of a node, None where none was read. `most`: of each counter, that is no fault."""
    gpus = evidence.read("probe", "gpu", "devices").value
    sick: dict[int, frozenset[int]] = {}
    for index, address in enumerate(sorted(gpus) if isinstance(gpus, Mapping) else ()):
        links = evidence.read("probe", "gpu", "devices", address, "nvlink", "link").value
        if isinstance(links, Mapping):
            sick[index] = frozenset(int(number) for number, link in links.items() if _is_sick(link, most))
    return sick or None


def _is_sick(link: Mapping[str, Mapping[str, object]], most: Mapping[str, float]) -> bool:
    counts = [(link.get(name, {}).get("value"), limit) for name, limit in most.items()]
    return link["up"].get("value") is False or any(isinstance(n, int) and n > limit for n, limit in counts)


def find_suspect_tray(
    domain: NvlinkDomain, read: Mapping[str, SickLinks], scan: FabricDiscovery | None
) -> tuple[str, str]:
    """Return the suspect tray of a rack, "" where it cannot be told, and the reason. `read`: the nodes that were."""
    names = domain.node_names
    hit = {
        NvlinkPlace("gpu", names.index(node), index + 1): links
        for node, sick in read.items()
        for index, links in sick.items()
        if links and node in names
    }
    nodes = sorted({names[place.tray] for place in hit})
    if not hit:
        return "", f"{UNTOLD}: no NVLink of the {len(read)} nodes that were read is down or counts errors"
    if len(nodes) == 1:
        return nodes[0], f"of {len(read)} nodes, it alone has NVLinks that are down or count errors"
    words = f"NVLinks of {len(hit)} GPUs on {len(nodes)} of {len(read)} nodes are down or count errors"
    numbered = {
        (port.guid, int(facts.label)): (port.number - 1) // DEVICES_PER_TRAY["asic"]
        for port, facts in (scan.facts if scan else {}).items()
        if facts.label.isdecimal()
    }
    led = [_list_trays(hit, numbered, first) for first in (0, 1)]
    trays = [tray for found in led for tray in found if len(found) == 1 and tray is not None]
    if 2 * len(nodes) > len(read) and len(trays) == 1:
        return domain.switch_name.format(tray=trays[0]), f"{words}, and all lead there"
    return "", f"{UNTOLD}: {words}, " + (
        "and lead to no single one" if numbered else "and no scan says where they lead"
    )


def _list_trays(
    hit: Mapping[NvlinkPlace, Iterable[int]], numbered: Mapping[tuple[str, int], int], first: int
) -> set[int | None]:
    return {numbered.get((place.guid, number + first)) for place, links in hit.items() for number in links}
