"""Checklists: what technicians do before a node is certified, and what they photograph before it is sent back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

OneLineText = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\n]+$")]


class TechnicianInspection(StrictModel):
    """What hands do in a state: `title` says it in a few words, `steps` one after the other, `done` when it is over."""

    title: OneLineText
    steps: list[OneLineText] = Field(min_length=1, max_length=20)
    done: OneLineText


class Checklists(SpecDocument):
    """What technicians check in each state that waits for them, and the photos of parts that go back to the vendor.

    A node in such a state has a ticket with these steps, whichever way it came there. `photos`: name → what must be
    seen on it; a file `NAME.jpg` in the dossier's folder answers it.

    `states`: what technicians do, by state.
    """

    kind: Literal["Checklists"]
    sources: list[str] = Field(min_length=1)
    states: dict[str, TechnicianInspection] = Field(default={})
    photos: dict[SpecName, OneLineText] = Field(default={})
