"""What a digest sink is: one module, and an entry point of the group `assay.digest_sinks` that names its class.

As with ticket sinks, the entry point's name is the key below which a TicketRoute declares the sink's settings.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from assay.model.specs.sink_settings import DigestSettings
from assay.tickets.digests.digest import Digest
from assay.tickets.sink_protocol import SinkContext


class DigestSink(Protocol):
    """One place where people read messages."""

    settings_model: ClassVar[type[DigestSettings]]
    """The type of the settings."""
    is_local: ClassVar[bool]
    """Whether messages stay on this machine. A lab's messages go to local sinks only."""

    def __init__(self, settings: Any, context: SinkContext) -> None:
        """Open the sink. `settings` is an instance of `settings_model`. May raise AssayError."""

    def announce(self, digest: Digest) -> None:
        """Send one message. Give it the digest's id, if the sink can tell a repeated message by an id.

        Raises SinkUnavailable or TicketRefusal.
        """
