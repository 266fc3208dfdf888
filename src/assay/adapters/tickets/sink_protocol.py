"""What a ticket sink is: one module, and an entry point of the group `assay.ticket_sinks` that names its class.

The entry point's name is the key below which a TicketRoute declares the sink's settings. A sink imports what takes long
to load (an HTTP client) in its constructor: assay loads all sinks' classes to check a TicketRoute.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from assay.model.errors import AssayError
from assay.model.specs.sink_settings import SinkSettings

if TYPE_CHECKING:
    from assay.model.ticket import TicketRecord


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a sink gets besides its settings.

    `where` names the route in error messages. `secret` is what the settings' `credentials` lead to, "" without
    credentials: printable ASCII. `root` is the fleet repository, `home` its folder `.assay/`.
    """

    where: str
    secret: str
    root: Path
    home: Path


class TicketSink(Protocol):
    """One destination of tickets. To deliver a ticket twice leaves one ticket there, up to date."""

    settings_model: ClassVar[type[SinkSettings]]
    """The type of the settings."""
    is_local: ClassVar[bool]
    """Whether tickets stay on this machine. A lab's tickets go to local sinks only."""

    def __init__(self, settings: Any, context: SinkContext) -> None:
        """Open the sink. `settings` is an instance of `settings_model`. May raise AssayError."""

    def deliver(self, record: TicketRecord, version: str, external_id: str) -> str:
        """Create the ticket in the sink, or bring it up to date. Return the sink's own name for it (a path, a URL).

        `version` identifies what there is to say of the ticket. `external_id` is what an earlier delivery returned,
        "" if none did: then the sink first looks for a ticket that an interrupted delivery may have left.
        Raises TicketRefusal or SinkUnavailable.
        """

    def holds(self, external_id: str) -> bool:
        """Say whether the delivered ticket is still there. A sink that needs a request to find out returns True."""


class TicketRefusal(AssayError):
    """The sink refuses this ticket. It may take others."""


class TicketNotFound(TicketRefusal):
    """The ticket that an earlier delivery created no longer exists in the sink."""


class SinkUnavailable(AssayError):
    """The sink takes no ticket now.

    `soon`: another attempt within seconds may work. `after_s`: the seconds that the sink asks to wait, 0 for none.
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "", soon: bool = False, after_s: float = 0) -> None:
        super().__init__(what, where=where, fix=fix)
        self.soon, self.after_s = soon, after_s
