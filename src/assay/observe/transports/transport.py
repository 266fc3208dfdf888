"""What every way to a node's readings offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from assay.model.fleet import Node


class Transport(Protocol):
    """Brings the document of a node's probe, in one round trip."""

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Return what the probe prints with these arguments, or one `failed` leaf, within `deadline_s`.

        Raises Trouble where the inventory says something that cannot be meant.
        """
        ...
