"""WipeSpec: how the local NVMe drives of a node are wiped, and what becomes of a drive that could not be wiped."""

from __future__ import annotations

from posixpath import normpath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from assay.model.specs.spec_document import StrictModel

WipeMethod = Literal["sanitize-crypto", "sanitize-block", "format-crypto", "format-erase"]
"""`nvme sanitize` by a new key or of all blocks; `nvme format` by a new key (`--ses=2`) or of user data (`--ses=1`)."""
WIPE_METHODS: tuple[WipeMethod, ...] = ("sanitize-crypto", "sanitize-block", "format-crypto", "format-erase")


_SYSTEM_MOUNTS = ("/boot", "/boot/efi", "/efi", "/etc", "/usr", "/var")


def _is_no_system(path: str) -> str:
    if normpath(path) in _SYSTEM_MOUNTS:
        raise ValueError(f"{path} belongs to the running system")
    return path


DataMount = Annotated[str, Field(pattern=r"^/[\w./-]+$"), AfterValidator(_is_no_system)]
"""A mount point that does not belong to the running system."""


class WipeSpec(StrictModel):
    """How the local drives are wiped. A drive that holds the running system is never wiped, but told.

    `models`: shell patterns of the model names of drives to wipe; all, by default. `methods`: in order of preference; a
    drive gets the first that it knows, and the next if its blocks can still be read after that. `unmount`: mount
    points that the wipe may unmount; a drive that is used for anything else is left alone. `unwiped`: what people do
    with a drive that was not wiped: `remove` it and shred it, or let the node `return` with it. `source`: the rule
    behind it.
    """

    models: list[str] = Field(default=["*"], min_length=1)
    methods: list[WipeMethod] = Field(default=[*WIPE_METHODS], min_length=1)
    unmount: list[DataMount] = Field(default=[])
    unwiped: Literal["remove", "return"] = "remove"
    source: str
