"""TicketRoute: one destination of tickets, besides the ledger.

Its sinks are the plug-ins of the group `assay.ticket_sinks`. Each sink's name is a field of the route. The field's type
is the sink's settings model, which is in the sink's own module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, create_model, model_validator

from assay.model.errors import AssayError, ConflictError, FieldConflict
from assay.model.plugins import TICKET_SINKS, load_sink_class
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.spec_document import SpecDocument
from assay.model.specs.technician_work import SinkSettings


class _RouteDocument(SpecDocument):
    kind: Literal["TicketRoute"]

    @property
    def sink(self) -> str:
        """The name of the sink."""
        return next(name for name in _list_sinks(type(self)) if getattr(self, name) is not None)

    @property
    def settings(self) -> SinkSettings:
        """The settings of the sink."""
        settings: SinkSettings = getattr(self, self.sink)
        return settings

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
