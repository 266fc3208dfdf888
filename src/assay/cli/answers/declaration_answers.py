"""The shapes of what the verbs that declare the fleet print with `--format json`."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from assay.cli.verbs.doctor import Need
from assay.declare.starter.upgrade_plan import Status as UpgradeStatus


class EffectiveSpecValue(TypedDict):
    """One value that is declared for a node."""

    of: str
    """The document that it belongs to, such as Node/n0007 or NodeSpec/hgx-h100."""
    path: str
    """Where it is in the document, with dots, such as limits.pcie_width.value."""
    value: Any
    """The value; an empty list or mapping too. A secret is shown as "(not shown)"."""
    where: str
    """The file and line that say it, as `file:line`; "default" if no file does."""


class ShowAnswer(TypedDict):
    """What a node must be: its variables, node spec, firmware bundle and profile."""

    node: str
    """The name of the node."""
    values: list[EffectiveSpecValue]
    """The innermost values below PATH, in the order of the documents."""


CloudInitAnswer = TypedDict(
    "CloudInitAnswer",
    {
        "meta-data": Annotated[str, Field(description="The document meta-data, in YAML.")],
        "user-data": Annotated[str, Field(description="The document user-data: the node's system as declared.")],
        "vendor-data": Annotated[str, Field(description="The document vendor-data: what assay asks of every node.")],
        "network-config": NotRequired[
            Annotated[str, Field(description="The document network-config; only with a declared network.")]
        ],
    },
)
CloudInitAnswer.__doc__ = "The documents that cloud-init gets when the node boots."


class DoctorAnswer(TypedDict):
    """What this fleet needs of this machine, and what of it is missing."""

    needs: list[Need]
    """What is needed; with anything missing, the exit code is 1."""
    unused_extras: list[str]
    """The extras of assay that are not installed, and that this fleet does not need."""


class ImageFile(TypedDict):
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


class UpgradedFile(TypedDict):
    """What becomes of one file of a fleet repository."""

    path: str
    """The path of the file."""
    status: UpgradeStatus
    """What becomes of it."""
    reason: str
    """Why; "" if there is nothing to say."""
    moved_from: str
    """Where the file stood before; "" if it did not move."""


UpgradeAnswer = TypedDict(
    "UpgradeAnswer",
    {
        "from": Annotated[str, Field(description="The version of assay that the files are of.")],
        "to": Annotated[str, Field(description="The version of assay that they are brought to.")],
        "applied": Annotated[bool, Field(description="Whether the files were written; false without --apply.")],
        "finished": Annotated[bool, Field(description="Whether this finished an upgrade that was broken off.")],
        "uncommitted": Annotated[list[str], Field(description="Files that are not committed and would be touched.")],
        "files": Annotated[list[UpgradedFile], Field(description="Every file, also those that stay as they are.")],
    },
)
UpgradeAnswer.__doc__ = "What an upgrade does to the files of a fleet repository."


class FinishedUpgradeAnswer(TypedDict):
    """An upgrade that was broken off and is finished now."""

    applied: bool
    """Always true."""
    finished: bool
    """Always true."""
    files: list[UpgradedFile]
    """The files with conflicts."""
