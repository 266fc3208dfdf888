"""The ledger's one shape: an append-only list of entries, each with an id that says it only once.

Kinds and their bodies (all ids are strings, all times ISO 8601 UTC):

| kind | body |
|---|---|
| node.enrolled | pool, state |
| transition | from, to, decision |
| decision | from, to, timing (immediate, pending, record), rule (`file:line name`), remedy, because [Cause] |
| decision.withdrawn | decision, reason, by (the decision that took it back, where none of a person's word did) |
| fault | fault (id), class, subject, severity, blame, remedy, count, first_seen, last_seen, detail, marks, times |
| fault.cleared | fault, because |
| alert.resolved, alert.elsewhere (of no node) | alert, fault, part, began, detail, fingerprint |
| observe.failed | channel, reason |
| effect.intent | effect, action, decision, before {…}, params {…}, by {host, pid, until} |
| effect.done, effect.verified, effect.failed, effect.unknown | effect, reason, facts {…} |
| effect.tried | effect, action, attempt, reason, again_at |
| schedule.begun (of no node) | schedule, part (a pool or fabric), does, slot, attempt |
| schedule.ran (of no node) | the same, ended (done, failed, lost), reason, and what was found |
| verification.missed | schedule, since, reason |
| node.undrained | schedule, slot, reason (of the drain) |
| hold | who, reason, until (where it ends by itself) |
| release | who, reason |
| move, zap.asked | to, who, reason, now (where it is not to wait for jobs) |
| certified | who, reason |
| parts.seen | parts {place: kind, serial, was}, node {who says it: serial}, gone {place: serial, to, to_place} |
| part.replaced | old_serial, new_serial, who (inventory, bmc, dmi): another node stands in this place |
| part.returned | serial, kind, place, from, from_place, sent_at, faults |
| photos.taken | effect (of the dossier), who, photos [{file, sha256, bytes}] |
| ticket.opened, ticket.updated, ticket.closed | ticket, and on opening the Ticket; on closing title, `by` |
| ticket.reopened | ticket, the Ticket, reason, before (how often it was closed) |
| ticket.delivered | ticket, title, sink, to (which place), version (it has), external (what the sink calls it) |
| commit.accepted (of no node) | commit, signer, key (the fingerprint) |
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One line of history. `seq` is given by the ledger; appending an id that it holds already changes nothing."""

    id: str
    at: str
    kind: str
    node: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    seq: int = 0


def derive_id(*parts: str) -> str:
    """Return the id that follows from `parts`: the same parts give the same id, in any process, for ever."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
