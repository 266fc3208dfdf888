"""The work of technicians: where its tickets go, and what is to be looked at.

Each sink of tickets has its settings in its own module; here is what all have in common. Checklists say what they
do before a node is certified or sent back.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.spec_document import SpecDocument, StrictModel

LOCAL_URL = r"^http://(localhost|127\.0\.0\.1)(:[0-9]+)?(/[^\s@]*)?$"
SECURE_URL = rf"^https://[^\s/@]+(/[^\s@]*)?$|{LOCAL_URL}"
SinkUrl = Annotated[str, Field(pattern=SECURE_URL)]
"""HTTPS, or plain HTTP to this machine: credentials do not travel in the clear."""


class SinkSettings(StrictModel):
    """The settings of one ticket sink, as a TicketRoute declares them below the sink's name.

    A sink that needs a secret has a field `credentials` of type CredentialReference. `destination_fields` names the
    fields that tell one destination from another: after a change of one of them, every open ticket is delivered again.
    """

    destination_fields: ClassVar[tuple[str, ...]]

    def destination(self) -> list[str]:
        """Return what tells this destination from another one of the same sink."""
        return [str(getattr(self, name)) for name in self.destination_fields]

    def secret(self) -> CredentialReference | None:
        """Return where the secret of this sink is found, None if it needs none."""
        credentials = getattr(self, "credentials", None)
        return credentials if isinstance(credentials, CredentialReference) else None


class DigestSettings(SinkSettings):
    """The settings of a sink for people: which tickets it hears of, and how often.

    - `events`: the changes of tickets that people are told.
    - `severities`, `pools`: tell only of tickets of these; empty for all. With `pools`, tickets about no single node
      are left out.
    - `every_minutes`: how long after a digest the next one may follow. The changes between are in that one.
    """

    events: list[Literal["opened", "reopened", "closed"]] = Field(
        default=["opened", "reopened", "closed"], min_length=1
    )
    severities: list[Literal["catastrophic", "degraded", "informational"]] = Field(default_factory=list)
    pools: list[str] = Field(default_factory=list)
    every_minutes: float = Field(default=10, ge=1, le=1440)


OneLineText = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\n]+$")]


class TechnicianInspection(StrictModel):
    """What hands do in a state: `title` says it in a few words, `steps` one after the other, `done` when it is over."""

    title: OneLineText
    steps: list[OneLineText] = Field(min_length=1, max_length=20)
    done: OneLineText


class Checklists(SpecDocument):
    """What technicians check in each state that waits for them.

    A node in such a state has a ticket with these steps, whichever way it came there.

    `states`: what technicians do, by state.
    """

    kind: Literal["Checklists"]
    sources: list[str] = Field(min_length=1)
    states: dict[str, TechnicianInspection] = Field(default={})
