"""Drafts a FabricDesign as YAML, with `# review:` where a person must decide before the design counts.

`draft_from_discovery` lists every cable of a fabric that is known to be good, by GUID and port.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.learn.box_recognition import BoxChip, find_box_chips
from assay.fabric.learn.host_recognition import sort_naturally
from assay.fabric.learn.majority_votes import find_most_frequent
from assay.model.errors import AssayError
from assay.model.specs.fabric.adapter_names import HostAdapter
from assay.model.specs.fabric.ports_and_cables import DeviceKind
from assay.model.text.text_lists import format_count

SCHEMA = "# yaml-language-server: $schema=../schemas/fabric-design.json"


@dataclass(frozen=True, slots=True)
class DraftDevice:
    """A device to list. Without a GUID it becomes a comment, for a person to complete."""

    guid: str
    name: str
    kind: DeviceKind
    ports: int = 0
    review: str = ""
    node: str = ""
    box: str = ""
    module: str = ""
    plane: int = 0


@dataclass(frozen=True, slots=True)
class DraftCable:
    """A cable to list: its ends as `DEVICE/PORT`, and a hint that becomes a comment."""

    a: str
    b: str
    rate: str = ""
    hint: str = ""


@dataclass
class DesignDraft:
    """The draft of a design. `rate` applies to cables without one. `switch` is a switch model as YAML.

    `review` are lines for the person who reviews it. Raises AssayError for a name that no design may have.
    """

    name: str
    description: str
    rate: str
    site: str = ""
    switch: str = ""
    review: list[str] = field(default_factory=list)
    devices: list[DraftDevice] = field(default_factory=list)
    cables: list[DraftCable] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", self.name):
            raise AssayError(
                f"{self.name!r} is no name for a design", fix="use small letters, digits, points and dashes"
            )

    def as_yaml(self) -> str:
        """Return the draft as a YAML document."""
        return "\n".join(self._format_lines()) + "\n"

    def _format_lines(self) -> Iterator[str]:
        yield SCHEMA
        yield from (f"# review: {line}" for line in self.review)
        yield from ("kind: FabricDesign", f"name: {self.name}", f"description: {quote_yaml(self.description)}")
        if self.site:
            yield f"site: {quote_yaml(self.site)}"
        yield f"rate: {self.rate}"
        if self.switch:
            yield f"switch: {self.switch}"
        with_guid = [device for device in self.devices if device.guid]
        without_guid = [device for device in self.devices if not device.guid]
        if with_guid:
            yield "devices:"
            yield from map(format_device, with_guid)
        if without_guid:
            yield "# review: the GUIDs of these are not known; write them, and remove the #"
            yield from ([] if with_guid else ["# devices:"])
            yield from (f"# {format_device(device)}" for device in without_guid)
        yield "cables:"
        yield from map(format_cable, self.cables)


def format_device(device: DraftDevice) -> str:
    """Return a device as an item of a YAML list."""
    fields = [f'guid: "{device.guid or "0x"}"', f"name: {quote_yaml(device.name)}"]
    fields += [f"kind: {device.kind}"] if device.kind != "switch" else []
    fields += [f"ports: {device.ports}"] if device.ports else []
    fields += [f"node: {quote_yaml(device.node)}"] if device.node else []
    fields += [f"box: {quote_yaml(device.box)}"] if device.box else []
    fields += [f"module: {quote_yaml(device.module)}"] if device.module else []
    fields += [f"plane: {device.plane}"] if device.plane else []
    return f"  - {{{', '.join(fields)}}}{f' # review: {device.review}' if device.review else ''}"


def format_cable(cable: DraftCable) -> str:
    """Return a cable as an item of a YAML list."""
    text = f"{cable.a} - {cable.b}{f' {cable.rate}' if cable.rate else ''}"
    return f"  - {text if is_plain_yaml(text) else quote_yaml(text)}{f' # {cable.hint}' if cable.hint else ''}"


def is_plain_yaml(text: str) -> bool:
    """Return whether YAML reads a text as itself without quotes."""
    return text[:1].isalnum() and all(char.isalnum() or char in " _./-" for char in text)


def quote_yaml(text: str) -> str:
    """Return a text as YAML in quotes, without the characters that YAML forbids."""
    return json.dumps(replace_unprintable(text), ensure_ascii=False)


def replace_unprintable(text: str) -> str:
    """Return a text with a question mark for each unprintable character."""
    return "".join(char if char.isprintable() else "?" for char in text)


MAX_PORTS = 4096


def draft_from_discovery(
    discovery: FabricDiscovery, name: str, hosts: Mapping[str, HostAdapter], why: str = ""
) -> DesignDraft:
    """Return the draft of a design with every cable as it was discovered. `why` says why it has no rules.

    Raises AssayError for a partial discovery: the design would lack for ever what the discovery lacks.
    """
    if discovery.partial:
        more = f" (and {len(discovery.problems) - 1} more)" if len(discovery.problems) > 1 else ""
        raise AssayError(
            f"no design can be drafted from a partial discovery: {discovery.problems[0]}{more}",
            fix="discover again; `assay fabric compare` with any design lists every problem",
        )
    inside = {guid for guid, device in discovery.devices.items() if device.description == AGGREGATION_NODE}
    cables = [cable for cable in discovery.cables if not {cable.a.guid, cable.b.guid} & inside]
    rate = find_most_frequent(cable.rate for cable in cables)
    devices = {guid: device for guid, device in discovery.devices.items() if guid not in inside}
    draft = DesignDraft(name, f"Every cable as it was discovered: {len(devices)} devices, {len(cables)} cables", rate)
    draft.devices = make_devices(devices, cables, hosts)
    draft.cables = [make_cable(cable, devices, rate) for cable in cables]
    reason = f" ({replace_unprintable(why)})" if why else ""
    draft.review = [f"no pattern{reason}: this is the cabling as found, right or not", "add racks, units and lengths"]
    if other_rates := sum(1 for cable in draft.cables if cable.rate):
        draft.review.append(f"{format_count(other_rates, 'cable')} with another rate than {rate}: is that intended?")
    return draft


def make_devices(
    devices: dict[str, DiscoveredDevice], cables: list[DiscoveredCable], hosts: Mapping[str, HostAdapter]
) -> list[DraftDevice]:
    """Return the devices, switches first, by name."""
    highest_port: dict[str, int] = {}
    for port in (port for cable in cables for port in (cable.a, cable.b)):
        highest_port[port.guid] = max(highest_port.get(port.guid, 1), port.number)
    if (highest := max(highest_port.values(), default=0)) > MAX_PORTS:
        raise AssayError(f"no device has a port {highest}", fix="discover again")
    announced, chips = Counter(device.name for device in devices.values()), find_box_chips(devices, cables)
    alone = BoxChip("", "", 0, "")
    names = {guid: chips[guid].name if guid in chips and announced[device.name] > 1 else device.name
             for guid, device in devices.items()}  # fmt: skip
    count = Counter(names.values())
    return [
        DraftDevice(
            guid, names[guid], device.kind, min(max(device.ports, highest_port.get(guid, 1)), MAX_PORTS),
            review=f"{count[names[guid]]} devices announce this name" if count[names[guid]] > 1 else "",
            node=hosts[guid].host if guid in hosts else "", box=chip.box, module=chip.module, plane=chip.plane,
        )
        for guid, device in sorted(devices.items(), key=_find_sort_key)
        for chip in [chips.get(guid, alone)]
    ]  # fmt: skip


def _find_sort_key(entry: tuple[str, DiscoveredDevice]) -> tuple[bool, list[tuple[int, str]], str]:
    """Sort switches first, then by name, with numbers as numbers: mlx5_2 before mlx5_10."""
    guid, device = entry
    return device.kind == "hca", sort_naturally(device.name), guid


def make_cable(cable: DiscoveredCable, devices: dict[str, DiscoveredDevice], rate: str) -> DraftCable:
    """Return a discovered cable as a draft, with the names of its ends as a hint."""
    a, b = (f"{port.guid}/{port.number}" for port in (cable.a, cable.b))
    hint = " – ".join(
        replace_unprintable(devices[port.guid].name) for port in (cable.a, cable.b) if port.guid in devices
    )
    other_rate = cable.rate if cable.rate != rate else ""
    return DraftCable(a, b, other_rate, hint=f"{hint}{f'; review: most run at {rate}' if other_rate else ''}")
