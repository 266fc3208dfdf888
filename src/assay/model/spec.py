"""What every spec document has in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """A part of a spec: unknown keys are mistakes, nothing is coerced, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Spec(Strict):
    """A whole spec document: `kind` says which, `name` is how others refer to it."""

    kind: str
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    description: str = ""
    owner: str = ""
