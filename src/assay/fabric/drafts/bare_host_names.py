"""Tells the rails of adapters that announce only the name of their host, all of them the same.

Such adapters have no names of their own: the leaf that each is cabled to says which rail it is. So adapters of one host
that are in each other's place cannot be seen.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from assay.fabric.discovery import AGGREGATION_NODE, FabricDiscovery
from assay.fabric.drafts.host_recognition import sort_naturally
from assay.model.fabric.adapter_names import AdapterNames, HostAdapter

MAX_ADAPTERS = 16
"""Our own choice: a text that more adapters share is no host's name, but one that many hosts have."""


def find_bare_hosts(
    discovery: FabricDiscovery, names: AdapterNames, known: Collection[str] = ()
) -> dict[str, HostAdapter]:
    """Return the host of each adapter that announces one word, which few others do too. `known` are left out."""
    adapters: dict[str, list[str]] = defaultdict(list)
    for guid, device in discovery.devices.items():
        is_word = re.fullmatch(r"\S+", device.description) and device.description not in names.no_hosts
        if device.kind == "hca" and is_word and guid not in known and device.description != AGGREGATION_NODE:
            adapters[device.description].append(guid)
    hosts = {host: guids for host, guids in adapters.items() if 1 < len(guids) <= MAX_ADAPTERS}
    leaf_of = _find_leaves(discovery) if hosts else {}
    leaves_of = {host: _sort_leaves(discovery, {leaf_of[g] for g in guids if g in leaf_of})
                 for host, guids in hosts.items()}  # fmt: skip
    rails = _find_rails(list(leaves_of.values()))
    found: dict[str, HostAdapter] = {}
    for host, guids in hosts.items():
        free = set(rails.values())
        for guid in sorted(guids):
            rail = rails.get(leaf_of.get(guid, ""), -1)
            if rail in free:  # a second one at the same rail is in a wrong place, or no rail's
                free.discard(rail)
                found[guid] = HostAdapter(host, str(rail))
    return found


def _find_leaves(discovery: FabricDiscovery) -> dict[str, str]:
    """Return the switch at the first cable of each adapter."""
    found: dict[str, str] = {}
    for a, b, _ in discovery.cables:
        for here, there in ((a, b), (b, a)):
            far = discovery.devices.get(there.guid)
            if far is not None and far.kind == "switch":
                found.setdefault(here.guid, there.guid)
    return found


def _sort_leaves(discovery: FabricDiscovery, leaves: Collection[str]) -> list[str]:
    return sorted(leaves, key=lambda guid: (sort_naturally(discovery.devices[guid].name), guid))


def _find_rails(leaves_of_hosts: Sequence[Sequence[str]]) -> Mapping[str, int]:
    """Return the rail of each leaf: its place among the leaves of most hosts below it that have the usual number."""
    usual = Counter(map(len, leaves_of_hosts)).most_common(1)
    votes: dict[str, Counter[int]] = defaultdict(Counter)
    for leaves in leaves_of_hosts:
        for rail, leaf in enumerate(leaves if usual and len(leaves) == usual[0][0] else ()):
            votes[leaf][rail] += 1
    return {leaf: count.most_common(1)[0][0] for leaf, count in votes.items()}
