"""The order that items are judged in: what is read for one is read for its neighbours too."""

from __future__ import annotations

from functools import cache

import pytest

from assay.harness.slim import SlimItem
from assay.model.fleet import Fleet


def put_together(items: list[pytest.Item], fleet: Fleet) -> None:
    """Put slim items first, those of one node or rack together, in the order of the fleet."""
    if len(items) < 2:
        return
    places = {name: at for at, name in enumerate(fleet.nodes)}
    last = len(places)

    @cache
    def racks() -> dict[str, int]:
        return {f"{node.pool}/rack-{node.rack}": places[node.name] for node in fleet.nodes.values()}

    def place(item: pytest.Item) -> int:
        if not isinstance(item, SlimItem):
            return last + 1
        return places[item.whose] if item.whose else racks().get(str(item.subject), last)

    items.sort(key=place)
