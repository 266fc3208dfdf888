"""What customers are told of a node in its scheduler, and what an adapter does that can show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class NodeNotice:
    """What customers are told of a node: one line of text.

    `move` is an id of the node's last way out of service or back, if customers are not told of it yet: such a move is
    announced once, however often it is shown. It is "" where only the text is new.
    """

    in_service: bool
    text: str
    move: str = ""


@runtime_checkable
class ShowsNotices(Protocol):
    """A scheduler whose nodes can carry a notice. Nothing that somebody else wrote is changed."""

    def show_notices(self, notices: Mapping[str, NodeNotice]) -> None:
        """Show each node's notice, as far as possible. To show one twice leaves one.

        Raises AssayError after all others have been shown.
        """

    def find_missing_notices(self, notices: Mapping[str, NodeNotice]) -> dict[str, str]:
        """Read the nodes again, and return why a notice is not shown, by node. Raises AssayError without an answer."""
