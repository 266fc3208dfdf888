"""A design that a person goes through before it counts: written as YAML, with `# review:` where they must decide."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from assay.model.cable import DeviceKind
from assay.model.errors import Trouble

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
class Draft:
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
            raise Trouble(f"{self.name!r} is no name for a design", fix="use small letters, digits, points and dashes")

    def as_yaml(self) -> str:
        """Return the document."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield SCHEMA
        yield from (f"# review: {one}" for one in self.review)
        yield from ("kind: FabricDesign", f"name: {self.name}", f"description: {quoted(self.description)}")
        if self.site:
            yield f"site: {quoted(self.site)}"
        yield f"rate: {self.rate}"
        if self.switch:
            yield f"switch: {self.switch}"
        if any(one.guid for one in self.devices):
            yield "devices:"
            yield from (_device(one) for one in self.devices if one.guid)
        nameless = [one for one in self.devices if not one.guid]
        if nameless:
            yield "# review: no GUID is known of these; write it, and take the # away"
            yield from ([] if len(nameless) < len(self.devices) else ["# devices:"])
            yield from (f"# {_device(one)}" for one in nameless)
        yield "cables:"
        yield from map(_cable, self.cables)


def _device(one: DraftDevice) -> str:
    said = [f'guid: "{one.guid or "0x"}"', f"name: {quoted(one.name)}"]
    said += [f"kind: {one.kind}"] if one.kind != "switch" else []
    said += [f"ports: {one.ports}"] if one.ports else []
    said += [f"node: {quoted(one.node)}"] if one.node else []
    said += [f"rack: {quoted(one.rack)}"] if one.rack else []
    said += [f"u: {one.u}"] if one.u else []
    return f"  - {{{', '.join(said)}}}{f' # review: {one.review}' if one.review else ''}"


def _cable(one: DraftCable) -> str:
    said = f"{one.a} - {one.b}{f' {one.rate}' if one.rate else ''}{f' {one.length_m:g}m' if one.length_m else ''}"
    return f"  - {said if plain(said) else quoted(said)}{f' # {one.hint}' if one.hint else ''}"


def plain(text: str) -> bool:
    """Whether a text means itself in YAML without quotes."""
    return text[:1].isalnum() and all(char.isalnum() or char in " _./-" for char in text)


def quoted(text: str) -> str:
    """Return a text as YAML, in quotes, and without what no YAML file may hold."""
    return json.dumps(printable(text), ensure_ascii=False)


def printable(text: str) -> str:
    """Return a text with a question mark for each character that cannot be seen."""
    return "".join(char if char.isprintable() else "?" for char in text)


def most_frequent(texts: Iterable[str]) -> str:
    """Return the text that is there most often, the first of several; nothing of nothing."""
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return max(counts, key=lambda text: counts[text], default="")
