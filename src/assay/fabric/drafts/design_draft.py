"""A design that a person goes through before it counts: written as YAML, with `# review:` where they must decide.

Drafts a design from a discovery of a fabric that is known to be good: every cable, by GUID and port.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.model.errors import AssayError
from assay.model.fabric.ports_and_cables import DeviceKind

SCHEMA = "# yaml-language-server: $schema=../schemas/fabric-design.json"


@dataclass(frozen=True, slots=True)
class DraftDevice:
    """A device to be listed. Without a GUID it is written as a comment, to be completed."""

    guid: str
    name: str
    kind: DeviceKind
    ports: int = 0
    rack: str = ""
    u: int = 0
    review: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class DraftCable:
    """A cable to be listed: its ends as `DEVICE/PORT`, and what a person may want to know of it."""

    a: str
    b: str
    rate: str = ""
    length_m: float = 0
    hint: str = ""


@dataclass
class DesignDraft:
    """All of it. `rate` is that of cables which tell none; `switch` is a switch model as YAML, with its comment."""

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
        """Return the document."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield SCHEMA
        yield from (f"# review: {one}" for one in self.review)
        yield from ("kind: FabricDesign", f"name: {self.name}", f"description: {quote_yaml(self.description)}")
        if self.site:
            yield f"site: {quote_yaml(self.site)}"
        yield f"rate: {self.rate}"
        if self.switch:
            yield f"switch: {self.switch}"
        if any(one.guid for one in self.devices):
            yield "devices:"
            yield from (_format_device(one) for one in self.devices if one.guid)
        nameless = [one for one in self.devices if not one.guid]
        if nameless:
            yield "# review: no GUID is known of these; write it, and take the # away"
            yield from ([] if len(nameless) < len(self.devices) else ["# devices:"])
            yield from (f"# {_format_device(one)}" for one in nameless)
        yield "cables:"
        yield from map(_format_cable, self.cables)


def _format_device(one: DraftDevice) -> str:
    said = [f'guid: "{one.guid or "0x"}"', f"name: {quote_yaml(one.name)}"]
    said += [f"kind: {one.kind}"] if one.kind != "switch" else []
    said += [f"ports: {one.ports}"] if one.ports else []
    said += [f"node: {quote_yaml(one.node)}"] if one.node else []
    said += [f"rack: {quote_yaml(one.rack)}"] if one.rack else []
    said += [f"u: {one.u}"] if one.u else []
    return f"  - {{{', '.join(said)}}}{f' # review: {one.review}' if one.review else ''}"


def _format_cable(one: DraftCable) -> str:
    said = f"{one.a} - {one.b}{f' {one.rate}' if one.rate else ''}{f' {one.length_m:g}m' if one.length_m else ''}"
    return f"  - {said if is_plain_yaml(said) else quote_yaml(said)}{f' # {one.hint}' if one.hint else ''}"


def is_plain_yaml(text: str) -> bool:
    """Whether a text means itself in YAML without quotes."""
    return text[:1].isalnum() and all(char.isalnum() or char in " _./-" for char in text)


def quote_yaml(text: str) -> str:
    """Return a text as YAML, in quotes, and without what no YAML file may hold."""
    return json.dumps(replace_unprintable(text), ensure_ascii=False)


def replace_unprintable(text: str) -> str:
    """Return a text with a question mark for each character that cannot be seen."""
    return "".join(char if char.isprintable() else "?" for char in text)


def find_most_frequent(texts: Iterable[str]) -> str:
    """Return the text that is there most often, the first of several; nothing of nothing."""
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return max(counts, key=lambda text: counts[text], default="")


MOST_PORTS = 4096
ADAPTER = re.compile(r"(\S+) (?:mlx\d+_\d+|hfi\d+_\d+|HCA-\d+)")
"""How adapters announce themselves: their host's name, then their own."""
NO_HOST = "localhost"


def draft_from_discovery(discovery: FabricDiscovery, name: str) -> DesignDraft:
    """Return the draft. Raises Trouble for a partial discovery: what that lacks, the design would lack for ever."""
    if discovery.partial:
        more = f" (and {len(discovery.problems) - 1} more)" if len(discovery.problems) > 1 else ""
        raise AssayError(
            f"a partial discovery teaches nothing: {discovery.problems[0]}{more}",
            fix="discover again; `assay fabric compare` with any design says all that is wrong with it",
        )
    inside = {guid for guid, device in discovery.devices.items() if device.description == AGGREGATION_NODE}
    cables = [cable for cable in discovery.cables if not {cable.a.guid, cable.b.guid} & inside]
    rate = find_most_frequent(cable.rate for cable in cables)
    devices = {guid: device for guid, device in discovery.devices.items() if guid not in inside}
    draft = DesignDraft(name, f"Every cable as it was discovered: {len(devices)} devices, {len(cables)} cables", rate)
    draft.devices = _draft_devices(devices, cables)
    draft.cables = [_draft_cable(cable, devices, rate) for cable in cables]
    draft.review = _review(draft)
    return draft


def _draft_devices(devices: dict[str, DiscoveredDevice], cables: list[DiscoveredCable]) -> list[DraftDevice]:
    """Return the devices, switches first, by name."""
    ports: dict[str, int] = {}
    for port in (port for cable in cables for port in (cable.a, cable.b)):
        ports[port.guid] = max(ports.get(port.guid, 1), port.number)
    if most := max(ports.values(), default=0) > MOST_PORTS and max(ports.values()):
        raise AssayError(f"no device has a port {most}", fix="discover again")
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


def _order(one: tuple[str, DiscoveredDevice]) -> tuple[bool, list[tuple[int, str]], str]:
    """Order by name, its numbers as numbers: mlx5_2 stands before mlx5_10."""
    guid, device = one
    parts = re.findall(r"([0-9]{1,9})|([^0-9]+|[0-9]+)", device.name)
    return device.kind == "hca", [(int(number or 0), text) for number, text in parts], guid


def _draft_cable(cable: DiscoveredCable, devices: dict[str, DiscoveredDevice], rate: str) -> DraftCable:
    a, b = (f"{port.guid}/{port.number}" for port in (cable.a, cable.b))
    hint = " – ".join(
        replace_unprintable(devices[port.guid].name) for port in (cable.a, cable.b) if port.guid in devices
    )
    other = cable.rate if cable.rate != rate else ""
    return DraftCable(a, b, other, hint=f"{hint}{f'; review: most run at {rate}' if other else ''}")


def _review(draft: DesignDraft) -> list[str]:
    other = sum(1 for cable in draft.cables if cable.rate)
    said = ["this is what was there, right or not; racks, units and lengths are for you to add"]
    return said + ([f"{other} cables run at another rate than {draft.rate}: meant so?"] if other else [])
