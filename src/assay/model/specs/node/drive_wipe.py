"""WipeSpec: how the local NVMe drives of a node are wiped, and what becomes of a drive that could not be wiped."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from assay.model.specs.spec_document import StrictModel

WipeMethod = Literal["sanitize-crypto", "sanitize-block", "format-crypto", "format-erase"]
"""`nvme sanitize` by a new key or of all blocks; `nvme format` by a new key (`--ses=2`) or of user data (`--ses=1`)."""
WIPE_METHODS: tuple[WipeMethod, ...] = ("sanitize-crypto", "sanitize-block", "format-crypto", "format-erase")


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
    unmount: list[Annotated[str, Field(pattern=r"^/[\w./-]+$")]] = Field(default=[])
    unwiped: Literal["remove", "return"] = "remove"
    source: str
