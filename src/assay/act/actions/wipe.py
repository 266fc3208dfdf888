"""The action `wipe`: the local NVMe drives of a node out of service erase themselves, as its spec declares.

Proof: blocks of each drive held a marker before and do not hold it now, and its sanitize log says so. A node without
`wipe` in its spec is left alone.
"""

from __future__ import annotations

from datetime import timedelta

from assay.act.actions import cordon
from assay.act.actions.action import (
    ActionContext,
    EffectFacts,
    EffectIntent,
    EffectVerification,
    find_action_effort,
    is_handed_over,
    require_effect,
)
from assay.act.remedies.gpu_occupancy import require_empty
from assay.act.remedies.node_wipe import (
    DriveReading,
    DriveRecord,
    NodeWipe,
    WipeVerdict,
    find_obstacle,
    is_selected,
    judge_order,
    read_local_drives,
    read_records,
    read_with_markers,
    record_proof,
)
from assay.adapters.scheduler import read_node_status
from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, DRIVE, project_node_assets
from assay.model.errors import AssayError
from assay.model.specs.node.host_settings import WipeSpec
from assay.model.timestamps import parse_time

patience_s = 600.0
undone_by = ""
"""What is erased is gone."""
ADVICE = {"remove": "remove these drives and shred them", "return": "the spec lets the node leave with them"}


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read which drives there are."""
    drives = read_local_drives(context.fleet.nodes[intent.node], {}) if _find_spec(context, intent) else []
    return {"drives": [{"drive": drive.name, "serial": drive.serial, "model": drive.model} for drive in drives]}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Wipe what is not wiped yet by this effect. Raises AssayError if a job may still use the node."""
    if spec := _find_spec(context, intent):
        require_effect(context.fleet, intent.node, "wipe", "its local drives would be erased")
        _require_closed(context, intent.node)
        NodeWipe(context, intent, spec).run()


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if every local drive is proven wiped. A drive that cannot be read is not."""
    spec = _find_spec(context, intent)
    if spec is None:
        is_proof = not is_handed_over(context, intent.node)
        return EffectVerification(is_proof, "its spec declares no wipe, so nothing was erased")
    if "wipe" not in (profile := context.fleet.profile_of(intent.node)).may:
        advice = "its drives stay here" if spec.unwiped == "remove" else ADVICE["return"]
        text = f"nothing was erased, since `may` of its profile {profile.name} does not name wipe; {advice}"
        return EffectVerification(False, text)
    records = read_records(context, intent)
    try:
        drives = read_with_markers(context, intent, records)
    except AssayError as error:
        reason = f"its drives are not proven wiped: {error.what}"
        if _may_be_under_way(context, intent, records):
            return EffectVerification(None, reason)
        return EffectVerification(False, f"{reason}; {ADVICE[spec.unwiped]}")
    verdicts = {str(drive): _judge(drive, records.get(drive.serial, DriveRecord()), spec) for drive in drives}
    described = []
    for drive in drives:
        verdict, record = verdicts[str(drive)], records.get(drive.serial)
        if verdict.standing == "wiped":
            record_proof(context, intent, drive, records[drive.serial], verdict.reason)
        named = {"drive": drive.name, "serial": drive.serial, "model": drive.model}
        method = record.order.method if record and record.order else ""
        described.append({**named, "method": method, "standing": verdict.standing, "proof": verdict.reason})
    absent = _describe_absent(context, intent, drives)
    facts: EffectFacts = {"drives": described, "absent": absent}
    wiped = [name for name, verdict in verdicts.items() if verdict.standing == "wiped"]
    counted = {str(drive) for drive in drives if is_selected(drive, spec)}
    rest = [f"{name}: {verdict.reason}" for name, verdict in verdicts.items() if verdict.standing != "wiped"]
    proven = f"proven wiped: {', '.join(wiped) or 'none'}"
    if not counted:
        reason = f"`wipe.models` of its spec leaves out every drive; {ADVICE[spec.unwiped]}"
        return EffectVerification(False, reason, facts)
    if counted <= set(wiped) and not absent:
        return EffectVerification(True, "; left alone: ".join([proven, *rest]), facts)
    is_open = any(verdict.standing in ("under way", "unknown") for verdict in verdicts.values())
    if is_open and _may_be_under_way(context, intent, records):
        return EffectVerification(None, "; ".join([*rest, *absent, proven]), facts)
    return EffectVerification(False, "; ".join([*rest, *absent, ADVICE[spec.unwiped], proven]), facts)


def _find_spec(context: ActionContext, intent: EffectIntent) -> WipeSpec | None:
    return context.fleet.spec_of(intent.node).wipe


def _require_closed(context: ActionContext, node: str) -> None:
    status = read_node_status(context.scheduler(node), node)
    require_empty(context, node, status, "nothing is erased")
    closed = cordon.verify_cordon_status(status)
    if not closed.done:
        raise AssayError(f"nothing is erased while a job may start: {closed.reason}", where=node)


def _may_be_under_way(context: ActionContext, intent: EffectIntent, records: dict[str, DriveRecord]) -> bool:
    """Whether a drive may still erase itself: it was told to within the deadline of the action."""
    patience = timedelta(seconds=find_action_effort(context.fleet, intent.action).deadline_s)
    begun = [parse_time(record.ordered_at) for record in records.values() if record.is_open]
    return any(context.clock.now() < at + patience for at in begun)


def _judge(drive: DriveReading, record: DriveRecord, spec: WipeSpec) -> WipeVerdict:
    if record.order and record.is_open:
        return judge_order(drive, record.order)
    if record.missed:
        return WipeVerdict("not wiped", "; ".join(f"{method}: {reason}" for method, reason in record.missed.items()))
    return WipeVerdict("not wiped", find_obstacle(drive, spec) or "nothing was ordered")


def _describe_absent(context: ActionContext, intent: EffectIntent, drives: list[DriveReading]) -> list[str]:
    """Return the drives that the node should have, and that do not answer: data may be on them."""
    known = project_node_assets(context.ledger.entries(intent.node, ASSET_ENTRY_KINDS)).parts
    seen, count = {drive.serial for drive in drives}, context.fleet.spec_of(intent.node).nvme.count
    gone = [
        f"{place} (serial {part.serial}) does not answer"
        for place, part in known.items()
        if part.kind == DRIVE and part.serial not in seen
    ]
    return gone or ([f"{count - len(drives)} of {count} drives do not answer"] if len(drives) < count else [])
