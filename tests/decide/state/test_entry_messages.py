"""History for people: every kind of line has words, says who and why, and names nothing by an id of ours."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from assay.decide.state.decision_and_fault_entries import make_cleared_entry
from assay.decide.state.entry_messages import FORMATTED_KINDS, EntryFormatter, format_entry
from assay.model.entries.faults import FaultClearedEntry
from assay.model.entries.registry import CONTENT_CLASSES
from assay.model.ledger_entry import LedgerEntry, derive_id
from tests.support.entry_lines import format_entries

AT = "2026-11-22T09:00:00+00:00"
ID = derive_id("x")
FAULT = {"fault": ID, "class": "gpu.xid.79", "subject": "h100-a/n0003/gpu2", "severity": "catastrophic", "count": 2}
CAUSE = {"kind": "certified", "id": ID, "text": "certified by bob: reseated"}
DECISION = {"decision": ID, "from": "triage", "to": "debug", "rule": "default.yaml:7 x", "because": [CAUSE]}
SENT = {"from": "n0001", "from_place": "gpu0", "sent_at": AT, "faults": ["gpu.xid.79"]}
ROLLOUT = {"rollout": ID}
GROUP = {"to": "zap", "reason": "bmc 1 → 2", "base": "ab" * 20, "nodes": ["n1", "n2"]}

BURN_IN = {"burn_in": ID, "spec": "day", "hours": 24, "drifts": ["gpu5: warmer"]}
TAKEOVER = {"serial": "S1", "account": "fleet", "factory_account": "root"}
WIPE = {"effect": ID, "serial": "S1", "model": "PM9A3", "drive": "nvme3", "method": "sanitize-crypto"}
WARNED = {
    "warning": ID, "rule": "heat", "revision": "ab", "stage": "record", "place": "gpu5", "serial": "S1",
    "name": "gpu_temperature", "unit": "C", "before": 61.0, "now": 70.0, "z": 9.1, "peers": 39, "limit": 85.0,
    "rate_days": 14.0, "days": [], "group": "rack r31", "p": None, "because": "hotter",
}  # fmt: skip
JOIN = {"token_sha256": "ab" * 32, "purpose": "slurm", "attempt": ID}
LINES = [
    ("burnin.started", BURN_IN, "burn-in day began, 24 h"),
    (
        "burnin.window",
        {**BURN_IN, "log": "a", "line": 1, "window": {"hours": 7.5, "phase": "heat"}},
        "burn-in: 7.5 h are done, phase heat",
    ),
    ("burnin.held", BURN_IN, "burn-in goes on for 24 h: gpu5: warmer"),
    ("burnin.ended", {**BURN_IN, "outcome": "failed", "reason": "gpu5 is wrong"}, "failed after 24.0 h: gpu5 is wrong"),
    ("node.enrolled", {"pool": "h100-a", "state": "triage"}, "starts in triage"),
    ("fault", {**FAULT, "detail": "fell off the bus"}, "catastrophic fault gpu.xid.79 on h100-a/n0003/gpu2 (2 times)"),
    ("fault.cleared", {"fault": ID, "because": f"back in production by decision {ID}"}, "gpu.xid.79 on h100-a/n0003"),
    (
        "decision",
        {**DECISION, "timing": "immediate", "remedy": "", "blockers": []},
        "triage → debug at once: certified",
    ),
    (
        "decision",
        {**DECISION, "to": "triage", "timing": "record", "remedy": "configure", "blockers": []},
        "gets its settings where it is: certified",
    ),
    (
        "decision",
        {**DECISION, "to": "triage", "timing": "record", "remedy": "configure-idle", "blockers": []},
        "gets its settings where it is, without a job: certified",
    ),
    (
        "decision",
        {**DECISION, "to": "triage", "timing": "record", "remedy": "wait", "blockers": ["job 17"]},
        "is not changed yet, waits for job 17: certified",
    ),
    ("transition", {"from": "triage", "to": "debug", "decision": ID}, "triage → debug: certified by bob: reseated"),
    ("decision.withdrawn", {"decision": ID, "reason": "its cause is gone"}, "no longer waits: its cause is gone"),
    (
        "node.replaced",
        {"pool": "a", "serial": "S3", "by": "n15", "by_serial": "S15", "since": "", "decision": "d"},
        "n15 (S15) takes the place of this node (S3) in pool a",
    ),
    ("node.renamed", {"serial": "S3", "from": "n0003", "pool": "h100-a"}, "the machine S3 was n0003"),
    ("node.left", {"to": "n0103"}, "its machine is n0103 now"),
    ("observe.failed", {"channel": "bmc", "reason": "no answer"}, "bmc did not answer: no answer"),
    ("effect.intent", {"effect": ID, "action": "reboot", "decision": ID}, "reboot begins"),
    ("effect.done", {"effect": ID, "reason": ""}, "reboot was done, not yet verified"),
    ("effect.tried", {"effect": ID, "reason": "BMC busy", "attempt": 1, "again_at": AT}, "is tried again: BMC busy"),
    ("effect.verified", {"effect": ID, "reason": "the boot id changed"}, "reboot verified: the boot id changed"),
    ("effect.failed", {"effect": ID, "reason": "dark"}, "reboot failed: dark"),
    ("effect.unknown", {"effect": ID, "reason": "dark"}, "reboot ended nobody knows how: dark"),
    ("hold", {"who": "ann", "reason": "r", "until": "2026-12-01T18:00:00+00:00"}, "ann until 2026-12-01 18:00 UTC: r"),
    ("release", {"who": "assay", "reason": "its end has come"}, "released by assay: its end has come"),
    (
        "breaker.cleared",
        {"pool": "h100-a", "who": "ann", "reason": "the leaf is mended"},
        "the breaker of pool h100-a was cleared by ann: the leaf is mended",
    ),
    ("certified", {"who": "bob", "reason": "reseated"}, "certified by bob: reseated"),
    (
        "entries.archived",
        {"through": 9, "archived": 7, "digest": "ab", "file": "a.gz", "sha256": "cd", "who": "ann"},
        "ann moved 7 old entries into the archive a.gz",
    ),
    (
        "evidence.pruned",
        {"before": "2026-08-30T04:00:00+00:00", "documents": 1200, "bytes": 10_400_000, "who": "ann"},
        "ann deletes 1200 documents of evidence from before 2026-08-30T04:00:00+00:00, 10.4 MB",
    ),
    (
        "outcomes.pruned",
        {"through": 3, "deleted": 1, "digest": "ab", "who": "ann"},
        "ann deleted 1 outcome of the runs up to number 3",
    ),
    ("move", {"to": "rma", "who": "ann", "reason": "third time", "now": True}, "asked by ann to go to rma at once"),
    ("zap.asked", {"to": "zap", "who": "ann", "reason": "new BIOS"}, "asked by ann to go to zap: new BIOS"),
    ("parts.seen", {"parts": {"gpu0": {"kind": "gpu", "serial": "B", "was": "A"}}, "node": {}}, "gpu0 is B, was A"),
    ("parts.seen", {"parts": {}, "node": {"bmc": "S1"}}, "serial number S1, by its BMC"),
    (
        "setup.seen",
        {"rack": "lab1/r01", "u": 4, "spec": "hgx-h100", "versions": {"driver": "570.1"}, "models": {"gpu0": "H100"}},
        "hgx-h100 in lab1/r01 u4; driver 570.1; 1 part by model",
    ),
    ("part.replaced", {"old_serial": "S1", "new_serial": "S2", "who": "bmc"}, "another node stands in this place: S2"),
    ("part.returned", {"serial": "A", "kind": "gpu", "place": "gpu5", **SENT}, "gpu5 (gpu A) was sent back from n0001"),
    ("ticket.opened", {"ticket": ID, "title": "GPU 5 is missing"}, "ticket opened: GPU 5 is missing"),
    ("ticket.updated", {"ticket": ID, "title": "GPU 5 is missing"}, "ticket updated: GPU 5 is missing"),
    ("ticket.closed", {"ticket": ID, "by": "run 7"}, "ticket closed: GPU 5 is missing (run 7)"),
    (
        "ticket.reopened",
        {"ticket": ID, "title": "GPU 5 is missing", "reason": "again"},
        "GPU 5 is missing (again)",
    ),
    ("ticket.delivered", {"ticket": ID, "sink": "jira", "external": "DC-7"}, "delivered to jira as DC-7: GPU 5"),
    (
        "digest.started",
        {"digest": ID, "route": "ops", "destination": ID, "tickets": {ID: AT}, "settled": []},
        "a digest of 1 ticket for ops",
    ),
    ("digest.sent", {"digest": ID, "route": "ops", "count": 2}, "ops has a digest of 2 tickets"),
    (
        "ticket.done",
        {"ticket": ID, "title": "GPU 5", "who": "tom", "note": "reseated"},
        "tom says that the work is done: GPU 5",
    ),
    ("machine.seen", {"machine": {"serial": "S1", "vendor": "V", "model": "M"}, "source": "lease"}, "serial S1, V M"),
    ("bmc.takeover", {**TAKEOVER, "step": "started"}, "factory login root is being changed to fleet"),
    ("bmc.takeover", {**TAKEOVER, "step": "failed", "reason": "no answer"}, "not changed for certain: no answer"),
    ("bmc.takeover", {**TAKEOVER, "step": "done"}, "accepts fleet, and refuses the factory login root"),
    (
        "join.issued",
        {**JOIN, "expires_at": AT, "proven_by": "tpm"},
        "token for slurm, good until 2026-11-22 09:00:00 UTC (proven by tpm)",
    ),
    (
        "boot.started",
        {"attempt": "a1", "image": "gpu-node", "image_version": "7"},
        "starts with image gpu-node (7), by itself",
    ),
    ("boot.stage", {"attempt": "a1", "stage": "agent", "proven_by": "tpm"}, "its start reached agent, proven by tpm"),
    ("boot.failed", {"attempt": "a1", "stage": "pxe", "reason": "silent"}, "its start failed after pxe: silent"),
    ("wipe.ordered", {**WIPE, "marker": "ab", "samples": 16}, "by sanitize, crypto erase; 16 of its blocks are marked"),
    ("wipe.proved", {**WIPE, "proof": "none can be read"}, "nvme3 (PM9A3, serial S1) is proven wiped by sanitize"),
    ("wipe.missed", {**WIPE, "reason": "it is in use"}, "was not wiped by sanitize, crypto erase: it is in use"),
    ("trend.warned", WARNED, "gpu5 gets worse (heat): hotter; rack r31"),
    (
        "trend.closed",
        {"warning": ID, "rule": "heat", "outcome": "right", "because": "XID 79", "fault": ID, "lead_days": 9.2},
        "a warning of heat was right, 9 d before: XID 79",
    ),
    (
        "trend.demoted",
        {"rule": "heat", "revision": "ab", "because": "2 of 31"},
        "heat only observes from now on: 2 of 31",
    ),
    (
        "trend.ranked",
        {"last": True, "standing": "verified", "because": "two warnings"},
        "jobs come last to the node, verified: two warnings",
    ),
    ("join.used", JOIN, "used its one-time token for slurm"),
    ("join.refused", {**JOIN, "why": "it was revoked"}, "was refused to join slurm: it was revoked"),
    ("join.revoked", {**JOIN, "why": "a token was replayed"}, "token for slurm is revoked: a token was replayed"),
    (
        "notice.intent",
        {"notice": ID, "in_service": False, "text": "The node left service.", "move": ID},
        "customers are to read on the node: The node left service.",
    ),
    ("notice.verified", {"notice": ID}, "customers read this on the node"),
    ("notice.failed", {"notice": ID, "reason": "it is empty"}, "customers do not read this on the node: it is empty"),
    (
        "notices.started",
        {"message": ID, "webhook": "acme", "destination": ID, "items": [{"node": "n0001"}]},
        "a message about 1 node for acme",
    ),
    ("notices.sent", {"message": ID, "webhook": "acme", "count": 2}, "acme has a message about 2 nodes"),
    ("alert.resolved", {"alert": "Hot", "fault": "gpu.thermal"}, "alert Hot is over"),
    ("alert.elsewhere", {"alert": "Hot", "detail": "rack 9"}, "1 alert that may speak of no node, such as Hot: rack 9"),
    ("schedule.begun", {"schedule": "scan", "part": "compute"}, "scan of compute begins"),
    ("schedule.ran", {"schedule": "scan", "part": "compute", "ended": "done", "reason": ""}, "scan of compute done"),
    ("verification.missed", {"schedule": "idle", "since": AT, "reason": "in use"}, "not verified: in use"),
    (
        "node.loaded",
        {"schedule": "idle", "slot": AT, "parts": {"battery": {"ended": "cut"}}, "reason": "job 7", "gone_ms": 180},
        "loaded by idle: battery cut; made room for job 7, gone within 0.2 s",
    ),
    (
        "node.loaded",
        {"schedule": "idle", "slot": AT, "parts": {"gpu_burn": {"ended": "done", "without": 1}}},
        "loaded by idle without 1 GPU of its spec: gpu_burn done",
    ),
    ("node.undrained", {"schedule": "idle", "slot": AT, "reason": "sunk"}, "given back"),
    ("commit.adopted", {"commit": "cd" * 20, "base": "ab" * 20}, "is brought to commit abababababab → cdcdcdcdcdcd"),
    (
        "rollout.started",
        {**ROLLOUT, "base": "ab" * 20, "commit": "cd" * 20, "groups": [GROUP]},
        "a rollout of abababababab → cdcdcdcdcdcd begins, 2 nodes: bmc 1 → 2",
    ),
    ("rollout.paused", {**ROLLOUT, "who": "ann", "reason": "look first"}, "paused by ann: look first"),
    ("rollout.resumed", {**ROLLOUT, "who": "ann", "reason": "it is fine"}, "goes on, by ann: it is fine"),
    ("rollout.aborted", {**ROLLOUT, "who": "ann", "reason": "wrong image"}, "aborted by ann: wrong image"),
    ("rollout.superseded", {**ROLLOUT, "by": ID, "reason": "2 nodes go on"}, "takes the rollout over: 2 nodes go on"),
    ("rollout.proven", {**ROLLOUT, "reason": "9 checks passed"}, "has what the rollout brings: 9 checks passed"),
    ("rollout.finished", {**ROLLOUT, "reason": "2 of 2 nodes proven"}, "finished: 2 of 2 nodes proven"),
    ("approved", {"decision": ID, "who": "ann", "reason": "go on"}, "approved by ann: go on"),
    ("declined", {"decision": ID, "who": "ann", "reason": "not now"}, "declined by ann: not now"),
    ("order.outlived", {"order": ID, "reason": "it was meant for 1 h"}, "waits for a person: it was meant for 1 h"),
    ("commit.accepted", {"commit": "ab" * 20, "signer": "ann", "key": "SHA256:x"}, "signed by ann"),
    ("burnin.note", {**BURN_IN, "event": "interrupted", "text": "the node started again"}, "the node started again"),
    ("burnin.note", {**BURN_IN, "event": "stopped", "text": ""}, "its load has ended"),
    ("burnin.over", BURN_IN, "its phases are over, and it waits for collectives with other nodes"),
    (
        "operation.planned",
        {
            "operation": "o1",
            "name": "reimage",
            "key": "k",
            "to": "production-netboot",
            "who": "ann",
            "reason": "a new image",
            "nodes": ["n0001", "n0002"],
            "starts_at": "2026-12-24T08:00:00+00:00",
            "ends_at": "2026-12-24T12:00:00+00:00",
        },
        "reimage of 2 nodes (n0001, n0002) is planned by ann from 2026-12-24 08:00 UTC to 2026-12-24 12:00 UTC",
    ),
    (
        "operation.deferred",
        {
            "operation": "o1",
            "who": "acme",
            "reason": "a run ends",
            "starts_at": "2026-12-25T08:00:00+00:00",
            "ends_at": "",
        },
        "planned work is deferred by acme to 2026-12-25 08:00 UTC: a run ends",
    ),
    (
        "operation.reserved",
        {"operation": "o1", "reason": "Slurm failed: Access/permission denied"},
        "planned work: Slurm failed: Access/permission denied",
    ),
    (
        "operation.dropped",
        {"operation": "o1", "who": "", "reason": "it is held"},
        "planned work did not begin: it is held",
    ),
]


def told() -> list[str]:
    teller = EntryFormatter()
    return [
        teller.format(LedgerEntry(str(number), AT, kind, "n0003", body)) for number, (kind, body, _) in enumerate(LINES)
    ]


@pytest.mark.parametrize(("text", "piece"), list(zip(told(), [piece for _, _, piece in LINES], strict=True)))
def test_a_line_is_told_as_a_person_would_tell_it(text, piece):
    assert piece in text
    assert not re.search(r"[0-9a-f]{16}", text), "an id is for machines"
    assert "{" not in text


def test_every_kind_of_line_has_words():
    assert {kind for kind, _, _ in LINES} == FORMATTED_KINDS == set(CONTENT_CLASSES)


def test_lines_of_one_pass_know_each_other():
    first, second = (
        LedgerEntry(str(number), AT, kind, "n0003", body) for number, (kind, body, _) in enumerate(LINES[5:7])
    )
    assert format_entries([first, second])[1].startswith(
        "n0003: fault over, gpu.xid.79 on h100-a/n0003/gpu2: back in production"
    )


def test_the_end_of_a_fault_names_it_where_its_beginning_is_not_read():
    clearance = FaultClearedEntry("f1", "back in production", name="gpu.xid.79 on h100-a/n0003/gpu2")
    entry = make_cleared_entry("n0003", clearance, datetime(2026, 11, 22, 9, tzinfo=UTC))
    assert format_entry(entry) == "n0003: fault over, gpu.xid.79 on h100-a/n0003/gpu2: back in production"


def test_a_kind_that_nobody_knows_is_told_plainly_and_whole():
    assert "colour red" in EntryFormatter().format(LedgerEntry("1", AT, "new.kind", "n0003", {"colour": "red"}))


def test_a_fault_begins_with_the_words_of_its_incident(catalog):
    body = {"class": "gpu.xid.79", "subject": "h100-a/n0003/gpu4", "severity": "catastrophic", "detail": "fell off"}
    times = {"count": 1, "first_seen": AT, "last_seen": AT, "times": [AT], "marks": {}}
    seen = LedgerEntry(
        "f1", AT, "fault", "n0003", {"fault": "f1", "blame": "hardware", "remedy": "reset", **body, **times}
    )
    told = EntryFormatter(catalog).format(seen)
    assert told.startswith(f"{catalog.describe('gpu.xid.79')}: catastrophic fault gpu.xid.79 on h100-a/n0003/gpu4")
