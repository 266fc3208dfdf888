"""The shapes of what the verbs that declare the fleet print with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.model.facts import fact, shown

if TYPE_CHECKING:
    from assay.declare.starter.upgrade_plan import Status as UpgradeStatus


@fact
class EffectiveSpecValue:
    """One value that is declared for a node."""

    of: str
    """The document that it belongs to, such as Node/n0007 or NodeSpec/hgx-h100."""
    path: str
    """Where it is in the document, with dots, such as limits.pcie_width.value."""
    value: Any
    """The value; an empty list or mapping too. A secret is shown as "(not shown)"."""
    where: str
    """The file and line that say it, as `file:line`; "default" if no file does."""


@fact
class ShowAnswer:
    """What a node must be: its variables, node spec, firmware bundle and profile."""

    node: str
    """The name of the node."""
    values: list[EffectiveSpecValue]
    """The innermost values below PATH, in the order of the documents."""


@fact
class CloudInitAnswer:
    """The documents that cloud-init gets when the node boots."""

    meta_data: str = shown("meta-data")
    """The document meta-data, in YAML."""
    user_data: str = shown("user-data")
    """The document user-data: the node's system as declared."""
    vendor_data: str = shown("vendor-data")
    """The document vendor-data: what assay asks of every node."""
    network_config: str | None = shown("network-config", omit=True, default=None)
    """The document network-config; only with a declared network."""


@fact
class ImageFile:
    """A file of an image that nodes boot."""

    image: str
    """The name of the image."""
    version: str
    """The version of the image."""
    nodes: int
    """How many nodes boot it."""
    file: str
    """Which of its files it is, such as kernel."""
    bytes: int | None
    """The size of the file on this server's disk, in bytes; null if it is missing."""
    sha256: str
    """The digest that the file must have."""
    url: str
    """Where it is fetched from."""


@fact
class UpgradedFile:
    """What becomes of one file of a fleet repository."""

    path: str
    """The path of the file."""
    status: UpgradeStatus
    """What becomes of it."""
    reason: str
    """Why; "" if there is nothing to say."""
    moved_from: str
    """Where the file stood before; "" if it did not move."""


@fact
class UpgradeAnswer:
    """What an upgrade does to the files of a fleet repository."""

    from_: str = shown("from")
    """The version of assay that the files are of."""
    to: str
    """The version of assay that they are brought to."""
    applied: bool
    """Whether the files were written; false without --apply."""
    finished: bool
    """Whether this finished an upgrade that was broken off."""
    uncommitted: list[str]
    """Files that are not committed and would be touched."""
    files: list[UpgradedFile]
    """Every file, also those that stay as they are."""


@fact
class FinishedUpgradeAnswer:
    """An upgrade that was broken off and is finished now."""

    applied: bool
    """Always true."""
    finished: bool
    """Always true."""
    files: list[UpgradedFile]
    """The files with conflicts."""
