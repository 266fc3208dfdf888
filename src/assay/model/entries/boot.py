"""Entries about the way of a machine into the fleet: seen before it is a node, started, and joined by a token.

Each start is an attempt with its own name. A token is stored only by its SHA-256.
"""

from __future__ import annotations

from assay.model.entries.entry_content import EntryContent
from assay.model.facts import fact, shown
from assay.model.specs.machines import SeenMachine


@fact
class BootStartedEntry(EntryContent):
    """A start of a node began. `image`: its name. `image_version`: the version of the image.

    `effect`: the id of the effect that asked for it, "" where the machine started by itself. `nonce_sha256`: the digest
    of the number that was given to its BMC as a proof, "" for none.
    """

    kind = "boot.started"
    attempt: str
    image: str
    image_version: str
    effect: str = shown(omit_stored=True, default="")
    nonce_sha256: str = shown(omit_stored=True, default="")


@fact
class BootStageEntry(EntryContent):
    """A start reached a stage (`model.specs.provisioning.BOOT_STAGES`) for the first time.

    Only `pxe` is recorded again: with each fetch of the boot script, until there are too many.

    `proven_by`: which proof of identity signed the report; "" for what anybody on the network can send. `words`: what
    the node says with it, cut and printable.
    """

    kind = "boot.stage"
    attempt: str
    stage: str
    proven_by: str = shown(omit_stored=True, default="")
    words: str = shown(omit_stored=True, default="")


@fact
class BootFailedEntry(EntryContent):
    """A start ended without success. `stage`: the last one that it reached, "" for none."""

    kind = "boot.failed"
    attempt: str
    stage: str
    reason: str


@fact
class JoinIssuedEntry(EntryContent):
    """A node got a token. `expires_at`: ISO 8601 UTC. `proven_by`: how it had proved which machine it is."""

    kind = "join.issued"
    token_sha256: str
    purpose: str
    attempt: str
    expires_at: str
    proven_by: str


@fact
class JoinUsedEntry(EntryContent):
    """A node used its token. It is good for nothing more."""

    kind = "join.used"
    token_sha256: str
    purpose: str
    attempt: str


@fact
class JoinRefusedEntry(EntryContent):
    """A node was refused, with the purpose and the attempt that it named. `token_sha256` is "" for no known token.

    `is_replay`: it showed a token that was used, or that belongs to another node.
    """

    kind = "join.refused"
    token_sha256: str
    purpose: str
    attempt: str
    why: str
    is_replay: bool = shown("replay", omit_stored=True, default=False)


@fact
class JoinRevokedEntry(EntryContent):
    """A token that was not used yet is good for nothing more, and why."""

    kind = "join.revoked"
    token_sha256: str
    purpose: str
    attempt: str
    why: str


@fact
class MachineSeenEntry(EntryContent):
    """A machine was seen, or says something else of itself than before. `source`: `scan`, `lease` or `report`."""

    kind = "machine.seen"
    machine: SeenMachine
    source: str


@fact
class BmcTakeoverEntry(EntryContent):
    """The factory login of a node's BMC is changed to the one that the inventory declares.

    `step`: `started` before the change, then `done` or `failed` with its `reason`. `serial`: of the machine. `account`,
    `factory_account`: user names.
    """

    kind = "bmc.takeover"
    step: str
    serial: str
    account: str
    factory_account: str
    reason: str = shown(omit_stored=True, default="")
