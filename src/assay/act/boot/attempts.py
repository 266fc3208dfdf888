"""The starts of a node, as the ledger's entries tell them: image, stages and end of each, and what is to come next.

An attempt's name is random at its end, so that nobody can name a start that has not happened. Only its own node knows
it first, but anybody on the provisioning network may read it: it is no proof of who speaks.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta

from assay.model.entries.boot import BootFailedEntry, BootStageEntry, BootStartedEntry
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.image import Image
from assay.model.specs.provisioning import BOOT_STAGES, BootStage, Provisioning
from assay.model.timestamps import format_time, parse_time

BOOT_KINDS = (BootStartedEntry.kind, BootStageEntry.kind, BootFailedEntry.kind)


@frozen
class BootAttempt:
    """One start of a node. `stages`: when it reached each, by name. `failure`: why it ended, "" while it did not.

    `effect`: the id of the effect that asked for it, "" where the machine started by itself. `fetches`: how often it
    fetched its boot script.
    """

    node: str
    name: str
    started_at: datetime
    image: str
    image_version: str
    effect: str = ""
    nonce_sha256: str = ""
    stages: dict[str, datetime] = field(default_factory=dict)
    proven_by: str = ""
    failure: str = ""
    fetches: int = 0

    @property
    def last_stage(self) -> str:
        """The furthest stage that it reached, "" for none."""
        return next((stage for stage in reversed(BOOT_STAGES) if stage in self.stages), "")


def name_attempt(node: str) -> str:
    """Return a new name: the node's, and 128 random bits."""
    return f"{node}.{secrets.token_hex(16)}"


def find_node_of(attempt: str) -> str:
    """Return the node that the name of an attempt says, "" for what is no such name."""
    return attempt.rpartition(".")[0]


def fold_attempts(entries: Iterable[LedgerEntry]) -> dict[str, BootAttempt]:
    """Return the attempts by name, the oldest first, from entries of any kinds in order."""
    attempts: dict[str, BootAttempt] = {}
    for entry in entries:
        if entry.kind == BootStartedEntry.kind:
            started = BootStartedEntry.read(entry)
            attempts[started.attempt] = BootAttempt(
                entry.node,
                started.attempt,
                parse_time(entry.at),
                started.image,
                started.image_version,
                started.effect,
                started.nonce_sha256,
            )
        elif entry.kind == BootStageEntry.kind:
            _add_stage(attempts, entry)
        elif entry.kind == BootFailedEntry.kind:
            failed = BootFailedEntry.read(entry)
            if attempt := attempts.get(failed.attempt):
                attempts[failed.attempt] = replace(attempt, failure=failed.reason)
    return attempts


def make_started_entry(
    node: str,
    attempt: str,
    image: Image,
    now: datetime,
    *,
    effect: str = "",
    nonce_sha256: str = "",
    after: str | None = None,
) -> LedgerEntry:
    """Return the entry of a start that begins.

    `after`: the attempt that was the newest one. Of several that begin after it at once, one wins.
    """
    content = BootStartedEntry(attempt, image.name, image.version, effect, nonce_sha256)
    ident = derive_id(content.kind, node, attempt) if after is None else derive_id(content.kind, node, "after", after)
    return content.make_entry(ident, format_time(now), node)


def make_stage_entry(
    attempt: BootAttempt, stage: BootStage, now: datetime, *, proven_by: str = "", words: str = "", number: int = 1
) -> LedgerEntry:
    """Return the entry of a stage. The ledger takes only the first one of an attempt for each stage, proof and number.

    `number`: which fetch of the boot script it is; 1 for other stages.
    """
    content = BootStageEntry(attempt.name, stage, proven_by, words)
    repeated = [str(number)] if number > 1 else []
    ident = derive_id(content.kind, attempt.node, attempt.name, stage, proven_by, *repeated)
    return content.make_entry(ident, format_time(now), attempt.node)


def make_failed_entry(attempt: BootAttempt, reason: str, now: datetime) -> LedgerEntry:
    """Return the entry of a failed start, one for each attempt."""
    content = BootFailedEntry(attempt.name, attempt.last_stage, reason)
    return content.make_entry(derive_id(content.kind, attempt.node, attempt.name), format_time(now), attempt.node)


def _add_stage(attempts: dict[str, BootAttempt], entry: LedgerEntry) -> None:
    reached = BootStageEntry.read(entry)
    if attempt := attempts.get(reached.attempt):
        stages = attempt.stages | {reached.stage: attempt.stages.get(reached.stage, parse_time(entry.at))}
        proof = attempt.proven_by or reached.proven_by
        fetches = attempt.fetches + (reached.stage == "pxe")
        attempts[reached.attempt] = replace(attempt, stages=stages, proven_by=proof, fetches=fetches)


def find_open_attempt(attempts: Sequence[BootAttempt], provisioning: Provisioning, now: datetime) -> BootAttempt | None:
    """Return the newest of a node's attempts, if it is still under way."""
    newest = attempts[-1] if attempts else None
    return newest if newest and is_open(newest, provisioning, now) else None


def is_open(attempt: BootAttempt, provisioning: Provisioning, now: datetime) -> bool:
    """Whether a start is still under way."""
    whole = timedelta(minutes=provisioning.deadlines.agent)
    return not attempt.failure and attempt.last_stage != "agent" and now - attempt.started_at < whole
