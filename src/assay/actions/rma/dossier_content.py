"""What a dossier says, as plain data that follows from the ledger, the evidence store and what was pinned.

How the failing checks of a node went before, and after each repair that was tried.

What a dossier is about, fixed in the ledger when it is asked for, so that it can be made again as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from assay.actions.action import ActionContext, EffectFacts, EffectIntent
from assay.lifecycle.asset_history import ASSET_ENTRY_KINDS, project_node_assets
from assay.lifecycle.faults.sightings import map_parts_by_pci
from assay.lifecycle.node_state import NodeState
from assay.lifecycle.node_state_projection import project_node_states
from assay.model.decision import REPAIR_ACTIONS
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, read_at_path
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome
from assay.model.timestamps import parse_time
from assay.observe.serial_numbers import PartSerial, find_node_serials, find_part_serials

FactsJson = dict[str, Any]


def list_repairs(story: NodeState | None) -> list[FactsJson]:
    """Return the repairs that were tried, and how each ended; what people certified in between is among them."""
    if story is None:
        return []
    tried = [effect for effect in story.effects if effect.action in REPAIR_ACTIONS]
    told = [{"what": one.action, "at": one.at, "end": one.standing, "reason": one.reason} for one in tried]
    told += [
        {"what": one.kind, "at": one.at, "end": "done", "reason": ""}
        for one in story.repairs
        if one.kind not in REPAIR_ACTIONS
    ]
    return sorted(told, key=lambda one: one["at"])


def summarize_check_history(
    ctx: ActionContext, node: str, one: RecordedOutcome, repairs: Sequence[FactsJson]
) -> FactsJson:
    """Return how a check that fails now went before: its last pass, its first failure since, and after each repair."""
    check, subject = one.outcome.check, one.outcome.subject
    known = [each for each in ctx.ledger.outcomes(node=node, checks={check}) if each.outcome.subject == subject]
    known.sort(key=lambda each: parse_time(each.measured_at))
    passes = [each for each in known if each.outcome.verdict == "pass"]
    since = parse_time(passes[-1].measured_at) if passes else parse_time("")
    fails = [each for each in known if each.outcome.verdict == "fail" and parse_time(each.measured_at) > since]
    return {
        "check": check,
        "subject": subject,
        "last_pass": _describe_outcome(passes[-1]) if passes else None,
        "first_fail": _describe_outcome(fails[0]) if fails else _describe_outcome(one),
        "fails": len(fails),
        "after": [_describe_after_repair(known, repair) for repair in repairs],
    }


def _describe_after_repair(known: Sequence[RecordedOutcome], repair: FactsJson) -> FactsJson:
    """Return what the check said first after a repair, None where it was not judged since."""
    since = parse_time(repair["at"])
    first = next((each for each in known if parse_time(each.measured_at) > since), None)
    return {"repair": repair["what"], "at": repair["at"], "said": _describe_outcome(first) if first else None}


def _describe_outcome(one: RecordedOutcome) -> FactsJson:
    outcome = one.outcome
    return {
        "at": one.measured_at,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "run": one.run,
        "evidence": outcome.evidence,
    }


DOSSIER_SCHEMA = "assay.dossier/2"
DossierJson = dict[str, Any]


def build_dossier_content(ctx: ActionContext, intent: EffectIntent, facts: Mapping[str, Any]) -> DossierJson:
    """Return the dossier of an intent for which `pinned` was noted. The same at any later time."""
    entries = [entry for entry in ctx.ledger.entries(intent.node) if entry.seq <= facts["upto"]]
    story = project_node_states(entries).get(intent.node)
    failing = [one for ident in facts["failing"] for one in _outcome(ctx, intent.node, ident)]
    return {
        "schema": DOSSIER_SCHEMA,
        "effect": intent.effect,
        "at": facts["at"],
        "reason": intent.reason,
        "node": facts["node"],
        "suspects": facts["suspects"],
        "parts": facts["parts"],
        "firmware": _firmware(_document(ctx, facts["evidence"])),
        "faults": _faults(entries),
        "repairs": list_repairs(story),
        "moves": [{"at": move.at, "from": move.origin, "to": move.target} for move in story.transitions]
        if story
        else [],
        "tests": facts["tests"],
        "failing": [{"run": one.run, **one.outcome.as_json()} for one in failing],
        "photos": facts["photos"],
    }


def read_dossier_evidence(ctx: ActionContext, told: DossierJson, evidence: str) -> dict[str, EvidenceDocument | str]:
    """Return the evidence that a dossier rests on by digest: what failing checks judged, and the newest document.

    In place of one that is missing or was changed stands the reason.
    """
    wanted = dict.fromkeys([evidence, *(one["evidence"] for one in told["failing"])])
    found: dict[str, EvidenceDocument | str] = {}
    for digest in wanted:
        if digest:
            try:
                found[digest] = ctx.evidence.get(digest)
            except AssayError as trouble:
                found[digest] = trouble.what
    return found


def _outcome(ctx: ActionContext, node: str, ident: str) -> list[RecordedOutcome]:
    run = ident.partition("/")[0]
    return [one for one in ctx.ledger.outcomes(run=run, node=node) if one.id == ident]


def _faults(entries: Sequence[LedgerEntry]) -> list[DossierJson]:
    """Return every fault as it was last told, with when it was cleared."""
    found: dict[str, DossierJson] = {}
    for entry in entries:
        if entry.kind == "fault":
            names = ("class", "subject", "severity", "blame", "count", "first_seen", "last_seen", "detail")
            found[entry.body["fault"]] = {name: entry.body.get(name, "") for name in names} | {"cleared_at": ""}
        elif entry.kind == "fault.cleared" and entry.body["fault"] in found:
            found[entry.body["fault"]]["cleared_at"] = entry.at
    return list(found.values())


def _document(ctx: ActionContext, digest: str) -> EvidenceDocument | None:
    try:
        return ctx.evidence.get(digest) if digest else None
    except AssayError:
        return None


def _firmware(evidence: EvidenceDocument | None) -> dict[str, str]:
    tree = evidence.read("bmc", "firmware") if evidence else None
    names = tree.value if tree and tree.kind == "value" and isinstance(tree.value, dict) else {}
    versions = {name: read_at_path(names, (name,)) for name in names}
    return {name: str(version.value) for name, version in sorted(versions.items()) if version.kind == "value"}


def read_dossier_facts(ctx: ActionContext, name: str) -> EffectFacts:
    """Return what a dossier that is asked for now is about.

    `upto`: the newest line of the ledger that counts; `at`; `evidence`: the digest of the node's newest document;
    `failing`: the ids of its failing outcomes, and `tests`: how these checks went until now; `node`, `parts`, `photos`;
    `suspects`: the parts that open faults name, with their serial numbers, by which they are recognised wherever they
    turn up again.
    """
    node, evidence = ctx.fleet.nodes[name], ctx.evidence.latest(name)
    entries = ctx.ledger.entries(name)
    parts = list_node_parts(ctx, name, evidence)
    own = find_node_serials(evidence) if evidence else {}
    story = project_node_states(entries).get(name)
    failing, repairs = [one for one in ctx.ledger.latest(name) if one.outcome.verdict == "fail"], list_repairs(story)
    return {
        "upto": entries[-1].seq if entries else 0,
        "at": ctx.clock.now().isoformat(),
        "evidence": evidence.digest() if evidence else "",
        "failing": [one.id for one in failing],
        "tests": [summarize_check_history(ctx, name, one, repairs) for one in failing],
        "node": {"name": name, "serial": node.serial, **_place(node), "spec": node.spec, "read": own},
        "parts": [{slot: getattr(part, slot) for slot in PartSerial.__slots__} for part in parts],
        "photos": [{"name": photo, "shows": shows} for photo, shows in ctx.fleet.required_photos.items()],
        "suspects": list(_suspects(story, node.subject, {part.place: part for part in parts}, node.serial, own)),
    }


def list_node_parts(ctx: ActionContext, name: str, evidence: EvidenceDocument | None) -> list[PartSerial]:
    """Return the node's parts: as they read now, else, where one no longer answers, as the ledger last knew it."""
    now = find_part_serials(evidence, map_parts_by_pci(ctx.fleet.spec_of(name))) if evidence else []
    there = {part.place for part in now}
    known = project_node_assets(ctx.ledger.entries(name, ASSET_ENTRY_KINDS)).parts
    lost = [PartSerial(piece.kind, place, piece.serial) for place, piece in known.items() if place not in there]
    return sorted([*now, *lost], key=lambda part: (part.kind, part.place))


def _place(node: Any) -> dict[str, Any]:
    return {"site": node.site, "rack": node.rack, "u": node.u}


def _suspects(
    story: NodeState | None, subject: str, parts: Mapping[str, PartSerial], serial: str, read: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the parts that open faults of the hardware name; a fault of the whole node names the node."""
    blamed: dict[str, list[str]] = {}
    for known in story.faults if story else ():
        if known.is_open and known.blame == "hardware":
            place = known.subject.removeprefix(subject).strip("/")
            blamed.setdefault(place if place in parts else "", []).append(known.fault_class)
    for place, faults in sorted(blamed.items()):
        told = sorted(set(faults))
        if place:
            yield {"kind": parts[place].kind, "place": place, "serial": parts[place].serial, "faults": told}
        else:
            for one in _list_serials(serial, read.values()):
                yield {"kind": "node", "place": "", "serial": one, "faults": told}


def _list_serials(serial: str, read: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(one for one in (serial, *read) if one))
