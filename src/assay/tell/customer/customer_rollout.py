"""What a customer is told of a node in service for which a rollout has planned work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.tell.customer.customer_situation import CustomerSituation

PLANNED = "The node will get new firmware or settings, as planned, like the other nodes of its kind."
TURN = "It leaves service for this when its turn comes. Running jobs go on until they end."
PAUSED = "This work is paused at present: the node stays in service meanwhile."


def describe_planned_change(situation: CustomerSituation) -> Iterator[str]:
    """Yield what is planned for a node that waits for its turn, nothing for any other."""
    if situation.in_service and situation.planned_change:
        yield PLANNED
        yield PAUSED if situation.planned_change == "paused" else TURN
