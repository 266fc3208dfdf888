"""Entries about the starts of a node that boots from assay's images. Each start is an attempt with its own name."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.model.entries.entry_content import EntryContent, stored_as


@dataclass(frozen=True, slots=True)
class BootStartedEntry(EntryContent):
    """A start of a node began. `image`: its name. `image_version`: the version of the image.

    `effect`: the id of the effect that asked for it, "" where the machine started by itself. `nonce_sha256`: the digest
    of the number that was given to its BMC as a proof, "" for none.
    """

    kind = "boot.started"
    attempt: str
    image: str
    image_version: str
    effect: str = field(default="", metadata=stored_as(missing="", omit_empty=True))
    nonce_sha256: str = field(default="", metadata=stored_as(missing="", omit_empty=True))


@dataclass(frozen=True, slots=True)
class BootStageEntry(EntryContent):
    """A start reached a stage (`model.provisioning.provisioning_spec.BOOT_STAGES`) for the first time.

    Only `pxe` is recorded again: with each fetch of the boot script, until there are too many.

    `proven_by`: which proof of identity signed the report; "" for what anybody on the network can send. `words`: what
    the node says with it, cut and printable.
    """

    kind = "boot.stage"
    attempt: str
    stage: str
    proven_by: str = field(default="", metadata=stored_as(missing="", omit_empty=True))
    words: str = field(default="", metadata=stored_as(missing="", omit_empty=True))


@dataclass(frozen=True, slots=True)
class BootFailedEntry(EntryContent):
    """A start ended without success. `stage`: the last one that it reached, "" for none."""

    kind = "boot.failed"
    attempt: str
    stage: str
    reason: str
