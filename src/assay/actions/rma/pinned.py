"""What a dossier is about, fixed in the ledger when it is asked for, so that it can be made again as it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assay.actions.action import Context, Facts
from assay.actions.rma.tested import repairs_of, tested
from assay.lifecycle.fold import fold
from assay.lifecycle.sightings import parts_of
from assay.lifecycle.story import Story
from assay.lifecycle.whereabouts import KINDS, shelf_of
from assay.model.evidence import Evidence
from assay.observe.serials import Part, node_serials, parts_in


def pinned(ctx: Context, name: str) -> Facts:
    """Return what a dossier that is asked for now is about.

    `upto`: the newest line of the ledger that counts; `at`; `evidence`: the digest of the node's newest document;
    `failing`: the ids of its failing outcomes, and `tests`: how these checks went until now; `node`, `parts`, `photos`;
    `suspects`: the parts that open faults name, with their serial numbers, by which they are recognised wherever they
    turn up again.
    """
    node, evidence = ctx.fleet.nodes[name], ctx.evidence.latest(name)
    entries = ctx.ledger.entries(name)
    parts = parts_of_node(ctx, name, evidence)
    own = node_serials(evidence) if evidence else {}
    story = fold(entries).get(name)
    failing, repairs = [one for one in ctx.ledger.latest(name) if one.outcome.verdict == "fail"], repairs_of(story)
    return {
        "upto": entries[-1].seq if entries else 0,
        "at": ctx.clock.now().isoformat(),
        "evidence": evidence.digest() if evidence else "",
        "failing": [one.id for one in failing],
        "tests": [tested(ctx, name, one, repairs) for one in failing],
        "node": {"name": name, "serial": node.serial, **_place(node), "spec": node.spec, "read": own},
        "parts": [{slot: getattr(part, slot) for slot in Part.__slots__} for part in parts],
        "photos": [{"name": photo, "shows": shows} for photo, shows in ctx.fleet.photos.items()],
        "suspects": list(_suspects(story, node.subject, {part.place: part for part in parts}, node.serial, own)),
    }


def parts_of_node(ctx: Context, name: str, evidence: Evidence | None) -> list[Part]:
    """Return the node's parts: as they read now, else, where one no longer answers, as the ledger last knew it."""
    now = parts_in(evidence, parts_of(ctx.fleet.spec_of(name))) if evidence else []
    there = {part.place for part in now}
    known = shelf_of(ctx.ledger.entries(name, KINDS)).pieces
    lost = [Part(piece.kind, place, piece.serial) for place, piece in known.items() if place not in there]
    return sorted([*now, *lost], key=lambda part: (part.kind, part.place))


def _place(node: Any) -> dict[str, Any]:
    return {"site": node.site, "rack": node.rack, "u": node.u}


def _suspects(
    story: Story | None, subject: str, parts: Mapping[str, Part], serial: str, read: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the parts that open faults of the hardware name; a fault of the whole node names the node."""
    blamed: dict[str, list[str]] = {}
    for known in story.faults if story else ():
        if known.open and known.blame == "hardware":
            place = known.subject.removeprefix(subject).strip("/")
            blamed.setdefault(place if place in parts else "", []).append(known.fault_class)
    for place, faults in sorted(blamed.items()):
        told = sorted(set(faults))
        if place:
            yield {"kind": parts[place].kind, "place": place, "serial": parts[place].serial, "faults": told}
        else:
            for one in _numbers(serial, read.values()):
                yield {"kind": "node", "place": "", "serial": one, "faults": told}


def _numbers(serial: str, read: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(one for one in (serial, *read) if one))
