"""The base models of every spec document."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class StrictModel(BaseModel):
    """A part of a spec: unknown keys are refused, values are not converted, instances are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


SpecName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]


class SpecDocument(StrictModel):
    """A whole spec document of one `kind`. Others refer to it by `name`.

    It may extend one other document of its kind: mappings merge key by key, `null` removes a key, and any other value
    replaces the extended one (JSON Merge Patch, RFC 7396).
    """

    kind: str
    name: SpecName
    extends: SpecName = ""
    description: str = ""
    owner: str = ""
