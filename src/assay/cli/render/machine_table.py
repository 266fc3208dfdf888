"""Renders machines that were seen: which node each is, what contradicts that, and which machines nobody has seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from assay.model.text_lists import format_count
from assay.provisioning.discovery.machine_matching import KnownMachine, MachineMatch, Verdict

WORDS: dict[Verdict, str] = {
    "contradiction": "contradicts itself or the inventory: look before it boots",
    "misplaced": "stands where it does not belong: move it before it boots",
    "expected": "of a delivery: propose it with `assay discover --propose`",
    "stranger": "unknown: no delivery and no inventory has it",
    "node": "in the inventory",
}
"""In the order in which people should look."""


def matches_as_json(matches: Sequence[MachineMatch], unseen: Sequence[KnownMachine]) -> dict[str, Any]:
    """Return plain JSON data."""
    machines = [
        {
            "verdict": match.verdict,
            "node": match.node or None,
            "delivery": match.delivery or None,
            "problems": list(match.problems),
            "seen": match.seen.as_json(),
        }
        for match in matches
    ]
    expected = [{"node": one.name, "serial": one.serial, "rack": one.rack, "u": one.u} for one in unseen]
    return {"machines": machines, "not_seen": expected}


def format_matches(matches: Sequence[MachineMatch], unseen: Sequence[KnownMachine]) -> Iterator[str]:
    """Yield the lines: by verdict, the urgent ones first. Nodes that are as declared are only counted."""
    if not matches:
        yield "no machine was seen yet: assay discover --scan 10.0.0.0/24"
    for verdict, words in WORDS.items():
        some = [match for match in matches if match.verdict == verdict]
        if some:
            yield f"{format_count(len(some), 'machine')} {words}"
        for match in some if verdict != "node" else ():
            yield from _format_match(match)
    if unseen:
        yield f"{format_count(len(unseen), 'machine')} expected and not seen yet"
        for one in unseen:
            yield f"  {one.name}  serial {one.serial}, {one.rack} U{one.u}, delivery {one.delivery}"


def _format_match(match: MachineMatch) -> Iterator[str]:
    seen = match.seen
    said = [
        f"serial {seen.serial}" if seen.serial else "serial not read",
        " ".join(part for part in (seen.vendor, seen.model) if part),
        f"BMC {' '.join(part for part in (seen.bmc_mac, seen.address) if part)}",
        f"{seen.rack} U{seen.u}" if seen.rack else "",
    ]
    yield f"  {match.node or '?'}  {', '.join(part for part in said if part)}"
    yield from (f"      {problem}" for problem in match.problems)
