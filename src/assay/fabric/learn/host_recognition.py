"""Tells which host each discovered adapter is in, and by what name the host calls it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from assay.fabric.design.adapters import list_adapter_names
from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredDevice
from assay.model.fleet import Fleet
from assay.model.specs.fabric.adapter_names import AdapterNames, HostAdapter


def list_inventory_adapters(fleet: Fleet) -> dict[str, HostAdapter]:
    """Return the host of each adapter that the inventory lists, by GUID."""
    return {
        guid: HostAdapter(node.name, name.partition(" ")[2], rail)
        for node in fleet.nodes.values()
        for rail, (guid, name) in enumerate(zip(node.hca_guids, list_adapter_names(node, fleet), strict=True))
    }


def find_hosts(
    devices: Iterable[DiscoveredDevice], names: AdapterNames, listed: Mapping[str, HostAdapter] | None = None
) -> dict[str, HostAdapter]:
    """Return the host of each adapter by GUID. What is `listed` wins, then what an adapter announces, also as its name.

    A host of which two adapters announce the same name is left out. Adapters that announce the same text and share a
    system image GUID are one card, and so in one host.
    """
    known, found = dict(listed or {}), dict[str, HostAdapter]()
    cards: dict[tuple[str, str], list[str]] = defaultdict(list)
    hcas = [device for device in devices if device.kind == "hca" and device.description != AGGREGATION_NODE]
    for device in hcas:
        named = names.read(device.name)
        if device.guid in known:
            if named and known[device.guid].rail >= 0:
                known[device.guid] = known[device.guid]._replace(slot=named.slot)
        elif named:
            found[device.guid] = named
        elif device.system and device.description:
            cards[device.description, device.system].append(device.guid)
    count = Counter(found.values())
    ambiguous = {adapter.host for adapter, times in count.items() if times > 1}
    found = {guid: adapter for guid, adapter in found.items() if adapter.host not in ambiguous}
    for (_, system), guids in cards.items():
        if len(guids) > 1:
            found |= {guid: HostAdapter(f"host-{system}", str(number)) for number, guid in enumerate(sorted(guids))}
    return found | {device.guid: known[device.guid] for device in hcas if device.guid in known}


def sort_naturally(text: str) -> list[tuple[int, str]]:
    """Return a sort key by which mlx5_2 comes before mlx5_10."""
    return [(int(number or 0), rest) for number, rest in re.findall(r"([0-9]{1,9})|([^0-9]+|[0-9]+)", text)]
