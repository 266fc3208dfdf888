r"""Reads what UFM's REST interface lists of a fabric: links, ports, or both in one document.

```
file  = list | page | "{" { "links" | "ports" | "systems" ":" ( list | page ) } "}"         (JSON)
page  = "{" "data": list, "total_resources": n, "filtered_resources": n "}"
list  = "[" { link } "]" | "[" { port } "]"
```

The document with several lists is a snapshot as a script makes it of several answers
(`jq -n '{links: input, ports: input}' links.json ports.json`). UFM's own snapshots of a topology are `.topo` files,
which `assay fabric import` reads. `systems` has no cables and is not read. A page that has fewer entries than it counts
is incomplete. Where links and ports disagree, that is told, and ports give the rates.
Source: `ufm_links.py`, `ufm_ports.py`; NVIDIA UFM Enterprise REST API, pagination of resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.fabric.discovery import DiscoveredCable, FabricDiscovery, merge_port_facts
from assay.fabric.readers.link_end_matching import check_has_cables, format_port
from assay.fabric.readers.tolerant_json import load_json
from assay.fabric.readers.truncated_output import find_stderr_problems
from assay.fabric.readers.ufm_links import read_links
from assay.fabric.readers.ufm_ports import read_ports
from assay.fabric.reading_problems import LocalProblem

RESOURCES = ("links", "ports")
PORT_FIELDS = {"peer", "physical_state", "dname"}


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read links, ports or both. Never raises: `problems` names what cannot be read."""
    problems = find_stderr_problems(stderr)
    notes: list[str] = []
    document = load_json(text, problems, notes)
    lists = _split(document, problems) if document is not None else {}
    parts = [read(lists[name]) for name, read in (("links", read_links), ("ports", read_ports)) if name in lists]
    if not parts:
        return FabricDiscovery([], {}, tuple(check_has_cables([], problems)), notes=tuple(notes))
    found = parts[0] if len(parts) == 1 else _merge(*parts)
    problems += found.problems
    all_problems = tuple(check_has_cables(found.cables, problems))
    return FabricDiscovery(found.cables, found.devices, all_problems, found.facts, notes=tuple(notes))


def _split(document: Any, problems: list[str]) -> dict[str, list[Any]]:
    """Return the lists of a document by their resource."""
    if isinstance(document, dict) and any(name in document for name in RESOURCES):
        return {name: _unwrap(document[name], name, problems) for name in RESOURCES if name in document}
    entries = _unwrap(document, "this", problems)
    is_ports = any(isinstance(entry, dict) and PORT_FIELDS & entry.keys() for entry in entries)
    return {"ports" if is_ports else "links": entries}


def _unwrap(part: Any, name: str, problems: list[str]) -> list[Any]:
    """Return the entries of a list or page."""
    if isinstance(part, list):
        return part
    entries = part.get("data") if isinstance(part, dict) else None
    if not isinstance(entries, list):
        problems.append(f"{name} is not a list of links or ports")
        return []
    total = part.get("filtered_resources", part.get("total_resources"))
    if isinstance(total, int) and total > len(entries):
        problems.append(f"{name} is one page: {len(entries)} of {total} entries")
    return entries


def _merge(by_link: FabricDiscovery, by_port: FabricDiscovery) -> FabricDiscovery:
    """Return the cables of both, with the rates that the ports tell, and a problem for each that only one has."""
    linked = {frozenset(cable[:2]) for cable in by_link.cables}
    ported = {frozenset(cable[:2]): cable for cable in by_port.cables}
    only_links = [cable for cable in by_link.cables if frozenset(cable[:2]) not in ported]
    only_ports = [cable for ends, cable in ported.items() if ends not in linked]
    problems = [*_describe(only_links, "links", "ports"), *_describe(only_ports, "ports", "links")]
    facts = merge_port_facts([*by_link.facts.values(), *by_port.facts.values()])
    return FabricDiscovery(
        [*by_port.cables, *only_links],
        {**by_link.devices, **by_port.devices},
        (*by_link.problems, *by_port.problems, *problems),
        facts,
    )


def _describe(cables: list[DiscoveredCable], has: str, lacks: str) -> Iterator[str]:
    for cable in cables:
        what = f"the link between {format_port(cable.a)} and {format_port(cable.b)} is among the {has}"
        yield LocalProblem(f"{what}, not among the {lacks}", cable.a.guid, cable.b.guid)
