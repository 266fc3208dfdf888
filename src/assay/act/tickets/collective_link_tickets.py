"""Tickets for links that scheduled searches with collectives name: an uplink or NVLink domain belongs to no node.

What is named and what proved good stands in the facts of the search's slot, in the ledger. A link stays named until a
later search sees it good, and never bad.

In a rack, each GPU has a link to each NVSwitch ASIC: a sick compute tray shows at its own GPUs, a sick switch tray at
the links of most nodes that lead to it. Where they lead, the rack's last scan says by the ports' numbers; that NVML
counts links from 0 or 1 below these is not documented, so a tray is named if all sick links lead there by one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from assay.act.schedules.due_slots import ScheduleHistory, ScheduleLine
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.scan import format_fabric_subject, read_discovery
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.nvlink_domain import DEVICES_PER_TRAY, NvlinkDomain, NvlinkPlace
from assay.model.text.lists import format_list
from assay.model.ticket import Ticket, TicketPlace
from assay.observe.evidence_store import EvidenceStore
from assay.validate.collectives.judging import PairObservation
from assay.validate.collectives.report import CollectivesReport

LINK_TICKET_KIND = "collectives"
"""How the keys of these tickets begin."""
LINK_KINDS = ("uplink", "nvlink")
SHOWN_RUNS = 6
SickLinks = Mapping[int, frozenset[int]]
"""The links of each GPU of a node that are down or count errors, by their numbers."""
LINK_FAULT = "gpu.nvlink.errors"
COUNTERS = {"nvlink_recoveries": "recoveries", "nvlink_crc_errors": "crc_errors"}
"""What a link counts, by the measurement and limit of the check that judges it."""
BOOT = ("probe", "host", "boot_id")
UNTOLD = "which switch tray cannot be told"


class NamedLink(NamedTuple):
    """A link that a search named. `seen`: symptom and runs, for people.

    Of an NVLink domain: `design`; `suspect`: the tray that it may be, "" where that cannot be told.
    """

    fabric: str
    schedule: str
    kind: str
    name: str
    seen: str
    design: str
    suspect: str

    @property
    def ticket_key(self) -> str:
        """The key of its ticket."""
        return f"{LINK_TICKET_KIND}/{self.fabric}/{self.name}"


class LinkFindings(NamedTuple):
    """The links that are named now, and by ticket key what proved others good."""

    named: Sequence[NamedLink]
    proofs: Mapping[str, str]


def make_link_facts(
    report: CollectivesReport,
    observations: Iterable[PairObservation],
    history: ScheduleHistory,
    line: ScheduleLine,
    designs: Mapping[str, str],
    suspects: Mapping[str, tuple[str, str]],
) -> dict[str, Any]:
    """Return the links that a search names, and of those named before the ones that it saw good and never bad.

    `designs`: the design of each NVLink domain. `suspects`: the suspect tray of each that is named, and why.
    """
    runs = list(observations)
    bad = {part.name for run in runs if run.is_bad for part in run.parts}
    good = {part.name for run in runs if run.verdict == "good" for part in run.parts}
    before = find_links([line], history).named
    named = {
        link.part.name: {
            "kind": link.part.kind,
            "design": designs.get(link.part.name, ""),
            "suspect": suspects.get(link.part.name, ("", ""))[0],
            "seen": "\n".join(
                [
                    f"{link.symptom}; bad in {len(link.evidence)} of {link.tests} runs",
                    *(f"{run.round}  {run.label}: {run.why}" for run in link.evidence[:SHOWN_RUNS]),
                    *(": ".join(filter(None, each)) for name, each in suspects.items() if name == link.part.name),
                ]
            ),
        }
        for link in report.named
        if link.part.kind in LINK_KINDS
    }
    mended = sorted({link.name for link in before} & good - bad)
    return {name: value for name, value in (("links", named), ("links_good", mended)) if value}


def find_links(lines: Iterable[ScheduleLine], history: ScheduleHistory) -> LinkFindings:
    """Return what the searches of these schedule lines say about links, the newest last."""
    named: dict[tuple[str, str], NamedLink] = {}
    proofs: dict[str, str] = {}
    for line in lines:
        for slot, ended in sorted(history.get(line).ended.items()):
            for name, link in ended.facts.get("links", {}).items():
                words = link["kind"], name, link["seen"], link.get("design", ""), link.get("suspect", "")
                named_link = NamedLink(line.target, line.name, *words)
                named[line.target, name] = named_link
                proofs.pop(named_link.ticket_key, None)
            for name in ended.facts.get("links_good", ()):
                if mended := named.pop((line.target, name), None):
                    proofs[mended.ticket_key] = f"{line}, slot {slot:%Y-%m-%d %H:%M} UTC, saw it good"
    return LinkFindings(list(named.values()), proofs)


def make_link_tickets(links: Iterable[NamedLink]) -> Iterator[Ticket]:
    """Yield the ticket of each named link."""
    for link in links:
        device, _, port = link.name.rstrip("]").partition("[")
        is_cable = link.kind == "uplink"
        parts = (
            ["the cable or one of its ends", "the port of the switch"] if is_cable else ["a switch tray", "its cables"]
        )
        steps = [
            f"read the counters of both ends: assay fabric scan {link.fabric}",
            f"see what it serves: assay fabric impact '{link.name}'",
            "reseat or exchange the cable; then search again",
        ]
        if not is_cable:
            look = (
                f"assay fabric scan {link.design}" if link.design else "nvidia-smi nvlink -s, on each node of the rack"
            )
            steps = [f"see which switch tray or link is not as designed: {look}", "exchange it; then search again"]
        yield Ticket(
            id=derive_id("ticket", link.ticket_key),
            key=link.ticket_key,
            title=f"{link.kind} {link.name} makes collectives bad" + (f": {link.suspect}" if link.suspect else ""),
            places=(TicketPlace(device, port=port), *([TicketPlace(link.suspect)] if link.suspect else [])),
            expected="pairs whose traffic crosses it are as good as the others",
            seen=link.seen,
            verify=f"assay schedules run {link.schedule} --of {link.fabric}",
            severity="degraded",
            cause=format_list([*parts, "errors that slow the link"]),
            steps="\n".join(steps),
        )


def read_suspect_tray(
    fleet: Fleet, ledger: Ledger, evidence: EvidenceStore, design: FabricDesign | None
) -> tuple[str, str]:
    """Return the suspect tray of a rack by what was read last, "" where it cannot be told, and the reason."""
    if design is None or design.nvlink is None:
        return "", f"{UNTOLD}: no FabricDesign describes its NVLinks"
    checks = [check.id for each in fleet.check_catalogs.values() for check in each.checks if check.fault == LINK_FAULT]
    read = {}
    for node in design.nvlink.node_names:
        latest, limits = evidence.latest(node), fleet.spec_of(node).limits
        most = {name: limits[name].value for name in COUNTERS if name in limits}
        read_passed = partial(_read_passed, ledger, evidence, checks, fleet.nodes[node].subject)
        if latest and (links := read_sick_links(latest, most, read_passed)):
            read[node] = links
    scan = evidence.latest(format_fabric_subject(design))
    return find_suspect_tray(design.nvlink, read, read_discovery(scan) if scan else None)


def _read_passed(
    ledger: Ledger, evidence: EvidenceStore, checks: Iterable[str], node: str, gpu: str
) -> dict[str, EvidenceDocument]:
    """Return what these checks judged when they last passed on a GPU, by measurement."""
    judged: dict[str, EvidenceDocument] = {}
    for each in filter(None, (ledger.last_outcome(check, f"{node}/{gpu}") for check in checks)):
        with suppress(AssayError):  # it is no longer stored: the whole count is compared, as the check does
            names = [number.name for number in each.outcome.measurements]
            judged |= dict.fromkeys(names, evidence.get(each.outcome.evidence))
    return judged


def read_sick_links(
    evidence: EvidenceDocument, most: Mapping[str, float], read_passed: Callable[[str], Mapping[str, EvidenceDocument]]
) -> SickLinks | None:
    """Return the sick links of a node, None where none was read.

    `most`: how much of each counter is no fault, since its check passed. `read_passed` returns by counter what that
    judged of a GPU. In another boot, a counter began again at 0.
    """
    gpus = evidence.read("probe", "gpu", "devices").value
    sick: dict[int, frozenset[int]] = {}
    for index, address in enumerate(sorted(gpus) if isinstance(gpus, Mapping) else ()):
        place = ("probe", "gpu", "devices", address, "nvlink", "link")
        links = evidence.read(*place).value
        if not isinstance(links, Mapping):
            continue
        counts = [(number, name, _count(evidence, *place, number, COUNTERS[name])) for number in links for name in most]
        high = [each for each in counts if each[2] > most[each[1]]]
        passed = read_passed(f"gpu{index}") if high else {}
        known = {name: document for name, document in passed.items() if document.read(*BOOT) == evidence.read(*BOOT)}
        down = {int(number) for number, link in links.items() if link["up"].get("value") is False}
        sick[index] = frozenset(down) | {
            int(number)
            for number, name, count in high
            if count - (_count(known[name], *place, number, COUNTERS[name]) if name in known else 0) > most[name]
        }
    return sick or None


def _count(evidence: EvidenceDocument, *path: str) -> float:
    return evidence.read(*path).value or 0


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
    led = [
        {numbered.get((place.guid, number + first)) for place, links in hit.items() for number in links}
        for first in (0, 1)
    ]
    trays = [tray for places in led for tray in places if len(places) == 1 and tray is not None]
    if 2 * len(nodes) > len(read) and len(trays) == 1:
        return domain.switch_name.format(tray=trays[0]), f"{words}, and all lead there"
    return "", f"{UNTOLD}: {words}, " + (
        "and lead to no single one" if numbered else "and no scan says where they lead"
    )
