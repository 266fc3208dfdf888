"""Drafts a design from a discovery of a fabric that is known to be good: every cable, by GUID and port."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from assay.fabric.discovery import AGGREGATION, Discovery, FoundCable, FoundDevice
from assay.fabric.draft import Draft, DraftCable, DraftDevice, most_frequent, printable
from assay.model.errors import Trouble

MOST_PORTS = 4096
ADAPTER = re.compile(r"(\S+) (?:mlx\d+_\d+|hfi\d+_\d+|HCA-\d+)")
"""How adapters announce themselves: their host's name, then their own."""
NO_HOST = "localhost"


def learn(discovery: Discovery, name: str) -> Draft:
    """Return the draft. Raises Trouble for a partial discovery: what that lacks, the design would lack for ever."""
    if discovery.partial:
        more = f" (and {len(discovery.problems) - 1} more)" if len(discovery.problems) > 1 else ""
        raise Trouble(
            f"a partial discovery teaches nothing: {discovery.problems[0]}{more}",
            fix="discover again; `assay fabric compare` with any design says all that is wrong with it",
        )
    inside = {guid for guid, device in discovery.devices.items() if device.description == AGGREGATION}
    cables = [cable for cable in discovery.cables if not {cable.a.guid, cable.b.guid} & inside]
    rate = most_frequent(cable.rate for cable in cables)
    devices = {guid: device for guid, device in discovery.devices.items() if guid not in inside}
    draft = Draft(name, f"Every cable as it was discovered: {len(devices)} devices, {len(cables)} cables", rate)
    draft.devices = _devices(devices, cables)
    draft.cables = [_cable(cable, devices, rate) for cable in cables]
    draft.review = _review(draft)
    return draft


def _devices(devices: dict[str, FoundDevice], cables: list[FoundCable]) -> list[DraftDevice]:
    """Return the devices, switches first, by name."""
    ports: dict[str, int] = {}
    for port in (port for cable in cables for port in (cable.a, cable.b)):
        ports[port.guid] = max(ports.get(port.guid, 1), port.number)
    if most := max(ports.values(), default=0) > MOST_PORTS and max(ports.values()):
        raise Trouble(f"no device has a port {most}", fix="discover again")
    shared = Counter(device.name for device in devices.values())
    hosts = _hosts(device.name for device in devices.values() if device.kind == "hca")
    return [
        DraftDevice(
            guid, device.name, device.kind, min(max(device.ports, ports.get(guid, 1)), MOST_PORTS),
            review=f"{shared[device.name]} devices announce this name" if shared[device.name] > 1 else "",
            node=hosts.get(device.name, "") if device.kind == "hca" else "",
        )
        for guid, device in sorted(devices.items(), key=_order)
    ]  # fmt: skip


def _hosts(names: Iterable[str]) -> dict[str, str]:
    """Return which host's adapter each name is. Where two adapters announce the same, their host tells nothing."""
    every = Counter(names)
    found = {name: said[1] for name in every if (said := ADAPTER.fullmatch(name))}
    doubtful = {found[name] for name, many in every.items() if many > 1 and name in found} | {NO_HOST}
    return {name: host for name, host in found.items() if host not in doubtful}


def _order(one: tuple[str, FoundDevice]) -> tuple[bool, list[tuple[int, str]], str]:
    """Order by name, its numbers as numbers: mlx5_2 stands before mlx5_10."""
    guid, device = one
    parts = re.findall(r"([0-9]{1,9})|([^0-9]+|[0-9]+)", device.name)
    return device.kind == "hca", [(int(number or 0), text) for number, text in parts], guid


def _cable(cable: FoundCable, devices: dict[str, FoundDevice], rate: str) -> DraftCable:
    a, b = (f"{port.guid}/{port.number}" for port in (cable.a, cable.b))
    hint = " – ".join(printable(devices[port.guid].name) for port in (cable.a, cable.b) if port.guid in devices)
    other = cable.rate if cable.rate != rate else ""
    return DraftCable(a, b, other, hint=f"{hint}{f'; review: most run at {rate}' if other else ''}")


def _review(draft: Draft) -> list[str]:
    other = sum(1 for cable in draft.cables if cable.rate)
    said = ["this is what was there, right or not; racks, units and lengths are for you to add"]
    return said + ([f"{other} cables run at another rate than {draft.rate}: meant so?"] if other else [])
