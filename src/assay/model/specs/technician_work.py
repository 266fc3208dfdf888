"""TicketRoute: one destination of tickets, besides the ledger.

Its sinks are the plug-ins of the group `assay.ticket_sinks`. Each sink's name is a field of the route. The field's type
is the sink's settings model, which is in the sink's own module.

What the settings of every ticket sink have in common. Each sink's own settings are in its module.

Checklists: what technicians do before a node is certified, and what they photograph before it is sent back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, create_model, model_validator

from assay.model.errors import AssayError, ConflictError, FieldConflict
from assay.model.plugins import TICKET_SINKS, load_sink_class
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

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
        found = getattr(self, "credentials", None)
        return found if isinstance(found, CredentialReference) else None


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


class _RouteDocument(SpecDocument):
    kind: Literal["TicketRoute"]

    @property
    def sink(self) -> str:
        """The name of the sink."""
        return next(name for name in _list_sinks(type(self)) if getattr(self, name) is not None)

    @property
    def settings(self) -> SinkSettings:
        """The settings of the sink."""
        found: SinkSettings = getattr(self, self.sink)
        return found

    @property
    def credentials(self) -> CredentialReference | None:
        """Where the secret of this route is found, None if it needs none."""
        return self.settings.secret()

    @model_validator(mode="after")
    def _has_one_sink(self) -> _RouteDocument:
        names = _list_sinks(type(self))
        if sum(getattr(self, name) is not None for name in names) != 1:
            raise ValueError(f"give exactly one of {_join(names)}")
        return self


def _list_sinks(model: type[_RouteDocument]) -> list[str]:
    return [name for name in model.model_fields if name not in _RouteDocument.model_fields]


def _make_route_model() -> type[_RouteDocument]:
    """Return the model with a field for each installed sink: local ones first, each half in alphabetical order."""
    names = sorted(set(TICKET_SINKS.names()) - _RouteDocument.model_fields.keys())
    types = {name: _load_settings_type(name) for name in names}
    fields: dict[str, Any] = {name: (types[name][1], None) for name in sorted(names, key=lambda name: types[name][0])}
    about = f"Where tickets go: exactly one of {_join([f'`{name}`' for name in fields])}."
    return create_model(
        "TicketRoute",
        __base__=_RouteDocument,
        __module__=__name__,
        __doc__=f"{about} A fleet may have many routes.\n\n"
        "Without a route, each ticket is a Markdown file in `.assay/tickets`.",
        **fields,
    )


def _load_settings_type(name: str) -> tuple[bool, Any]:
    """Return whether a sink leaves this machine, and the type of its field. Using a broken sink is a conflict."""
    try:
        sink = load_sink_class(name)
    except AssayError as broken:
        conflict = FieldConflict("ASY0004", (), broken.what, broken.fix)
        return True, Annotated[Any, BeforeValidator(_refuse(conflict))]
    return not sink.is_local, sink.settings_model | None


def _refuse(conflict: FieldConflict) -> Any:
    def refuse(_: object) -> object:
        raise ConflictError(conflict)

    return refuse


def _join(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


if TYPE_CHECKING:
    TicketRoute = _RouteDocument
else:
    TicketRoute = _make_route_model()


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
