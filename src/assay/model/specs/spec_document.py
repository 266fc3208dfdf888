"""What every spec document has in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class StrictModel(BaseModel):
    """A part of a spec: unknown keys are mistakes, nothing is coerced, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


SpecName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]


class SpecDocument(StrictModel):
    """A whole spec document: `kind` says which, `name` is how others refer to it.

    It may be laid over one other of its kind, which it `extends`: mappings merge key by key, `null` takes a key out,
    anything else stands in place of what was there (JSON Merge Patch, RFC 7396).
    """

    kind: str
    name: SpecName
    extends: SpecName = ""
    description: str = ""
    owner: str = ""
