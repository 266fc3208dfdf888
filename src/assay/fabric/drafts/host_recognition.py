"""Tells which host each discovered adapter is in, and by what name the host calls it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredDevice

NO_HOSTS = {"localhost", "localhost.localdomain", AGGREGATION_NODE}
HOST_PATTERNS: tuple[tuple[str, str], ...] = (
    ("rdma-ndd, Mellanox OFED: `%h %d`", r"(?P<host>\S+) (?P<slot>(?:mlx|mthca|hfi|qib|irdma|bnxt_re|hns)\w*\d)"),
    ("Mellanox OFED before rdma-ndd, UFM: HCA-n", r"(?P<host>\S+) (?P<slot>HCA-\d+)"),
    ("systemd's names of network devices", r"(?P<host>\S+)[ :](?P<slot>ib(?:p|s|P)?\d\w*|mlx5_ib\d+)"),
    ("a host and its card, as some sites write it", r"(?P<host>\S+)[ :/](?P<slot>(?:hca|ib|nic|rail|port)[-_]?\d+)"),
)
"""How adapters announce themselves (NodeDesc), each with its source: the `host`, and the adapter's `slot` in it."""


class HostAdapter(NamedTuple):
    """The host that an adapter is in, and the host's name for it."""

    host: str
    slot: str


def find_hosts(devices: Iterable[DiscoveredDevice], inventory: Mapping[str, HostAdapter]) -> dict[str, HostAdapter]:
    """Return the host of each adapter by GUID. The inventory wins, then what an adapter announces.

    A host of which two adapters announce the same name is left out. Adapters that announce the same text and share a
    system image GUID are one card, and so in one host.
    """
    adapters = [device for device in devices if device.kind == "hca" and device.guid not in inventory]
    found: dict[str, HostAdapter] = {}
    cards: dict[tuple[str, str], list[str]] = defaultdict(list)
    for device in adapters:
        if named := _read_name(device.name):
            found[device.guid] = named
        elif device.system and device.description:
            cards[device.description, device.system].append(device.guid)
    count = Counter(found.values())
    ambiguous = {adapter.host for adapter, times in count.items() if times > 1} | NO_HOSTS
    found = {guid: adapter for guid, adapter in found.items() if adapter.host not in ambiguous}
    for (_, system), guids in cards.items():
        if len(guids) > 1:
            found |= {guid: HostAdapter(f"host-{system}", str(number)) for number, guid in enumerate(sorted(guids))}
    return found | dict(inventory)


def _read_name(name: str) -> HostAdapter | None:
    for _, pattern in HOST_PATTERNS:
        if match := re.fullmatch(pattern, name):
            return HostAdapter(match["host"], match["slot"])
    return None


def sort_naturally(text: str) -> list[tuple[int, str]]:
    """Return a sort key by which mlx5_2 comes before mlx5_10."""
    return [(int(number or 0), rest) for number, rest in re.findall(r"([0-9]{1,9})|([^0-9]+|[0-9]+)", text)]
