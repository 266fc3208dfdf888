"""What a dossier says, as plain data from the ledger and the evidence store.

`read_dossier_facts` fixes what the dossier is about when it is first needed; the ledger keeps that with the effect's
intent. `build_dossier_content` adds what follows from it. So a dossier can be built again as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent
from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, project_node_assets
from assay.decide.state.lemon_score import compute_lemon_score
from assay.decide.state.node_projection import project_node_states
from assay.decide.state.node_state import NodeState
from assay.model.decision import COLLECT, REPAIR_ACTIONS, WIPE, ActionName
from assay.model.entries.effects import EffectVerifiedEntry
from assay.model.entries.faults import FaultClearedEntry, FaultEntry
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, read_at_path
from assay.model.facts import to_json
from assay.model.faults.sightings import map_parts_by_pci
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome
from assay.model.timestamps import parse_time
from assay.observe.evidence_contents import PartSerial, find_node_serials, find_part_serials

DOSSIER_SCHEMA = "assay.dossier/2"
FAULT_FIELDS = ("subject", "severity", "blame", "count", "first_seen", "last_seen", "detail")
DossierJson = dict[str, Any]


def read_dossier_facts(context: ActionContext, name: str) -> EffectFacts:
    """Return what a dossier of the node `name` is about, as of now.

    - `upto`: the last ledger entry that counts. `at`: now (ISO 8601). `evidence`: the digest of the newest document.
    - `failing`: the ids of the failing outcomes. `tests`: the history of their checks.
    - `node`, `parts`: the node, and its parts.
    - `lemon`: the node's lemon score with its reasons, None where the policy has none.
    - `suspects`: the parts that open faults name, with their serial numbers, by which they are recognised elsewhere.
    """
    node, evidence = context.fleet.nodes[name], context.evidence.latest(name)
    entries = context.ledger.entries(name)
    parts = list_node_parts(context, name, evidence)
    serials = find_node_serials(evidence) if evidence else {}
    state = project_node_states(entries).get(name)
    failing = [recorded for recorded in context.ledger.latest(name) if recorded.outcome.verdict == "fail"]
    repairs = list_repairs(state)
    score = compute_lemon_score(context.fleet.policy, state) if state else None
    place = {"site": node.site, "rack": node.rack, "u": node.u}
    return {
        "upto": entries[-1].seq if entries else 0,
        "at": context.clock.now().isoformat(),
        "evidence": evidence.digest() if evidence else "",
        "failing": [recorded.id for recorded in failing],
        "tests": [summarize_check_history(context, name, recorded, repairs) for recorded in failing],
        "node": {"name": name, "serial": node.serial, **place, "spec": node.spec, "read": serials},
        "parts": [{slot: getattr(part, slot) for slot in PartSerial.__slots__} for part in parts],
        "suspects": list(_list_suspects(state, node.subject, parts, [node.serial, *serials.values()])),
        "lemon": {"points": score.points, "is_lemon": score.is_lemon, **to_json(score)} if score else None,
    }


def list_node_parts(context: ActionContext, name: str, evidence: EvidenceDocument | None) -> list[PartSerial]:
    """Return the node's parts: those in the evidence, and those that no longer answer as the ledger knew them last."""
    present = find_part_serials(evidence, map_parts_by_pci(context.fleet.spec_of(name))) if evidence else []
    places = {part.place for part in present}
    known = project_node_assets(context.ledger.entries(name, ASSET_ENTRY_KINDS)).parts
    lost = [PartSerial(part.kind, place, part.serial) for place, part in known.items() if place not in places]
    return sorted([*present, *lost], key=lambda part: (part.kind, part.place))


def list_repairs(state: NodeState | None, actions: frozenset[ActionName] = REPAIR_ACTIONS) -> list[DossierJson]:
    """Return the effects of these actions and what people certified, by time, each with how it ended."""
    if state is None:
        return []
    repairs = [
        {"what": effect.action, "at": effect.at, "end": effect.standing, "reason": effect.reason}
        for effect in state.effects
        if effect.action in actions
    ]
    repairs += [
        {"what": repair.kind, "at": repair.at, "end": "done", "reason": ""}
        for repair in state.repairs
        if repair.kind not in REPAIR_ACTIONS
    ]
    return sorted(repairs, key=lambda repair: repair["at"])


def summarize_check_history(
    context: ActionContext, node: str, failing: RecordedOutcome, repairs: Sequence[DossierJson]
) -> DossierJson:
    """Return the history of a failing check: its last pass, its first failure since, and after each repair."""
    check, subject = failing.outcome.check, failing.outcome.subject
    known = [
        recorded
        for recorded in context.ledger.outcomes(node=node, checks={check})
        if recorded.outcome.subject == subject
    ]
    known.sort(key=lambda recorded: parse_time(recorded.measured_at))
    passes = [recorded for recorded in known if recorded.outcome.verdict == "pass"]
    since = parse_time(passes[-1].measured_at) if passes else parse_time("")
    fails = [
        recorded
        for recorded in known
        if recorded.outcome.verdict == "fail" and parse_time(recorded.measured_at) > since
    ]
    after = []
    for repair in repairs:
        repaired_at = parse_time(repair["at"])
        first = next((recorded for recorded in known if parse_time(recorded.measured_at) > repaired_at), None)
        seen = _describe_outcome(first) if first else None
        after.append({"repair": repair["what"], "at": repair["at"], "said": seen})
    return {
        "check": check,
        "subject": subject,
        "last_pass": _describe_outcome(passes[-1]) if passes else None,
        "first_fail": _describe_outcome(fails[0] if fails else failing),
        "fails": len(fails),
        "after": after,
    }


def _describe_outcome(recorded: RecordedOutcome) -> DossierJson:
    outcome = recorded.outcome
    return {
        "at": recorded.measured_at,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "run": recorded.run,
        "evidence": outcome.evidence,
    }


def _list_suspects(
    state: NodeState | None, subject: str, parts: Sequence[PartSerial], node_serials: Sequence[str]
) -> Iterator[DossierJson]:
    """Yield the parts that open hardware faults name. A fault of the whole node names the node, by each serial."""
    parts_by_place = {part.place: part for part in parts}
    faults_by_place: dict[str, set[str]] = {}
    for fault in state.faults if state else ():
        if fault.is_open and fault.blame == "hardware":
            place = fault.subject.removeprefix(subject).strip("/")
            faults_by_place.setdefault(place if place in parts_by_place else "", set()).add(fault.fault_class)
    for place, faults in sorted(faults_by_place.items()):
        if place:
            part = parts_by_place[place]
            yield {"kind": part.kind, "place": place, "serial": part.serial, "faults": sorted(faults)}
        else:
            for serial in dict.fromkeys(filter(None, node_serials)):
                yield {"kind": "node", "place": "", "serial": serial, "faults": sorted(faults)}


def build_dossier_content(context: ActionContext, intent: EffectIntent, facts: Mapping[str, Any]) -> DossierJson:
    """Return the dossier of an intent, from the facts of `read_dossier_facts`. It is the same at any later time."""
    entries = [entry for entry in context.ledger.entries(intent.node) if entry.seq <= facts["upto"]]
    state = project_node_states(entries).get(intent.node)
    transitions = state.transitions if state else ()
    failing = []
    for ident in facts["failing"]:
        outcomes = context.ledger.outcomes(run=ident.partition("/")[0], node=intent.node)
        failing += [recorded for recorded in outcomes if recorded.id == ident]
    return {
        "schema": DOSSIER_SCHEMA,
        "effect": intent.effect,
        "at": facts["at"],
        "reason": intent.reason,
        "node": facts["node"],
        "suspects": facts["suspects"],
        "lemon": facts.get("lemon"),
        "parts": facts["parts"],
        "firmware": _read_firmware(context, facts["evidence"]),
        "faults": _list_faults(entries),
        "repairs": list_repairs(state, REPAIR_ACTIONS | {WIPE}),
        "diagnostics": list_archives(entries),
        "moves": [{"at": move.at, "from": move.origin, "to": move.target} for move in transitions],
        "tests": facts["tests"],
        "failing": [{"run": recorded.run, **recorded.outcome.as_json()} for recorded in failing],
    }


def list_archives(entries: Sequence[LedgerEntry]) -> list[DossierJson]:
    """Return what was collected before restarts, the oldest first: when, the file with its digest, what it lacks."""
    done = [EffectVerifiedEntry.read(entry) for entry in entries if entry.kind == EffectVerifiedEntry.kind]
    fields = ("at", "path", "sha256", "bytes", "lacking")
    collected = [each.facts for each in done if each.action == COLLECT and "path" in each.facts]
    return [{field: facts[field] for field in fields} for facts in collected]


def read_dossier_evidence(
    context: ActionContext, dossier: DossierJson, newest: str
) -> dict[str, EvidenceDocument | str]:
    """Return a dossier's evidence by digest: what the failing checks judged, and the document `newest`.

    A document that is missing or was changed is the reason, as text.
    """
    documents: dict[str, EvidenceDocument | str] = {}
    for digest in dict.fromkeys([newest, *(recorded["evidence"] for recorded in dossier["failing"])]):
        if digest:
            try:
                documents[digest] = context.evidence.get(digest)
            except AssayError as error:
                documents[digest] = error.what
    return documents


def _list_faults(entries: Sequence[LedgerEntry]) -> list[DossierJson]:
    """Return every fault as its last entry describes it, with the time at which it was cleared."""
    faults: dict[str, DossierJson] = {}
    for entry in entries:
        if entry.kind == "fault":
            fault = FaultEntry.read(entry)
            fields = {name: getattr(fault, name) for name in FAULT_FIELDS}
            faults[fault.fault] = {"class": fault.fault_class, **fields, "cleared_at": ""}
        elif entry.kind == "fault.cleared" and (cleared := FaultClearedEntry.read(entry).fault) in faults:
            faults[cleared]["cleared_at"] = entry.at
    return list(faults.values())


def _read_firmware(context: ActionContext, digest: str) -> dict[str, str]:
    """Return version by name of the evidence `digest`, empty if that is missing."""
    try:
        evidence = context.evidence.get(digest) if digest else None
    except AssayError:
        evidence = None
    return read_firmware_versions(evidence) if evidence else {}


def read_firmware_versions(evidence: EvidenceDocument) -> dict[str, str]:
    """Return version by name of the firmware that a BMC's evidence has a value for."""
    tree = evidence.read("bmc", "firmware")
    names = tree.value if tree.kind == "value" and isinstance(tree.value, dict) else {}
    versions = {name: read_at_path(names, (name,)) for name in names}
    return {name: str(version.value) for name, version in sorted(versions.items()) if version.kind == "value"}
