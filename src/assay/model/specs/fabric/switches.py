"""The switches of a fabric design: their model, the tiers of the fat tree, where each switch stands, and its name.

Switches are named, and ports of nodes labelled, by patterns such as `leaf-su{unit:02}-r{rail+1}`. A placeholder is a
number of the switch, and may have a number added: rails count from 0, so that `{rail+1}` counts from 1. All else counts
from 1, and `{unit-1}` from 0. A width (`:02`) writes zeros in front.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, ValidationError

from assay.model.specs.fabric.cable import PortLabelling
from assay.model.specs.fabric.design_parts import DeviceGuid, LinkRate, PortRange
from assay.model.specs.spec_document import StrictModel

_WIDTH = r"(:0?\d)?"
_RAIL = r"rail(\+\d{1,4})?"
_COUNTED = r"(-1|\+\d{1,4})?"
"""What may be added to a number that counts from 1. No name has a negative number."""
LeafName = Annotated[str, Field(pattern=rf"^([^{{}}]|\{{({_RAIL}|(unit|index){_COUNTED}){_WIDTH}\}})+$")]
SpineName = Annotated[str, Field(pattern=rf"^([^{{}}]|\{{({_RAIL}|(index|pod|number){_COUNTED}){_WIDTH}\}})+$")]
CoreName = Annotated[str, Field(pattern=rf"^([^{{}}]|\{{(index|plane|number){_COUNTED}{_WIDTH}\}})+$")]
HcaLabel = Annotated[str, Field(pattern=rf"^([^{{}}]|\{{{_RAIL}{_WIDTH}\}})*$")]
PLACEHOLDER = re.compile(r"\{(\w+)([+-]\d+)?(?::0?(\d))?\}")
PLACEHOLDER_ORDER = ("index", "unit", "pod", "plane", "rail", "number")


class _Numbers(dict[str, int]):
    """The values of placeholders, also of those with a number added, such as `rail+1`."""

    def __missing__(self, key: str) -> int:
        name, sign, added = re.split("([+-])", key)
        return self[name] + int(sign + added)


def fill_pattern(pattern: str, fields: Mapping[str, int]) -> str:
    """Return the text that a pattern gives. `fields` are the values of its placeholders."""
    return pattern.format_map(_Numbers(fields))


def parse_switch_position(pattern: str, name: str) -> tuple[int, ...] | None:
    """Return the numbers in a name that follows a tier's pattern, as a sort key; None for any other name."""
    match = _compile_name_pattern(pattern).fullmatch(name)
    return tuple(int(match.groupdict().get(number) or 0) for number in PLACEHOLDER_ORDER) if match else None


@lru_cache(64)
def _compile_name_pattern(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a tier's name pattern. The first of two equal placeholders is captured.

    Without a text between two numbers, the second one has as many digits as its width says.
    """
    texts = PLACEHOLDER.split(pattern)[::4]
    pieces, known = [re.escape(texts[0])], set[str]()
    for match, text in zip(PLACEHOLDER.finditer(pattern), texts[1:], strict=True):
        digits = rf"\d{{{max(int(match[3] or 1), 1)},}}"
        pieces += [digits if match[1] in known else f"(?P<{match[1]}>{digits})", re.escape(text)]
        known.add(match[1])
    return re.compile("".join(pieces))


PortLabelRule = Literal["number", "cage/port"]
MAX_SWITCHES = 10_000  # switches of one tier
MAX_PLANES = 8
UNKNOWN_RACK = "unknown"
"""How the rack of a switch begins in the draft of a design, until a person writes it."""
CsvPath = Annotated[str, Field(pattern=r"^[^/.][^\\]*\.csv$")]
RackName = Annotated[str, Field(pattern=r"^([^{}]|\{rack(:0?\d)?\})+$")]


class SwitchChip(NamedTuple):
    """One chip of a switch, as the fabric announces it. `box` is the switch, "" where it has one chip."""

    guid: str
    name: str
    switch: FabricSwitch
    box: str
    module: str
    plane: int


class FabricSwitch(StrictModel):
    """One switch: its GUID and its place. `name` is needed only where the tier's pattern does not give it.

    `guid`: its GUID, as on its label. `rack`: the rack it stands in. `u`: its rack unit, counted from the bottom.
    `box`: the chassis that it is a chip of, such as a director switch. `module`: the card that it is on there.
    `other_planes`: in a design with planes, the GUIDs of its chips of plane 2, 3 and so on. `guid` is that of plane 1.
    `down` and `up`: of a leaf, its ports to nodes and to spines where they are others than those of the tier.
    """

    guid: DeviceGuid
    rack: str
    u: int = Field(gt=0)
    name: str = ""
    box: str = ""
    module: str = ""
    other_planes: list[DeviceGuid] = Field(default=[])
    down: PortRange | None = None
    up: PortRange | None = None

    def list_chips(self, name: str) -> list[SwitchChip]:
        """Return the switch, which has this name, as a chip; with planes, the chip of each."""
        if not self.other_planes:
            return [SwitchChip(self.guid, name, self, self.box, self.module, 0)]
        guids = enumerate([self.guid, *self.other_planes], start=1)
        return [SwitchChip(guid, f"{name}-p{plane}", self, name, "", plane) for plane, guid in guids]


class SwitchModel(StrictModel):
    """The model of the fabric's switches.

    With the label rule `cage/port` and two ports a `cage`, port 33 reads `17/1` (QM9700). `split: 2` turns each of the
    `ports` into two, each with its own number and label: port 65 then reads `17/1/1`.

    `product`: the vendor's name. `ports`: how many a switch has. `labels`: how a port is written on it.
    """

    product: str
    ports: int = Field(gt=0, le=4096)
    labels: PortLabelRule = "number"
    cage: int = Field(default=2, gt=0, le=8)
    split: int = Field(default=1, gt=0, le=8)

    def label(self, port: int) -> str:
        """Return the label printed at a port."""
        return self.port_labelling.label(port)

    @property
    def port_labelling(self) -> PortLabelling:
        """How the ports are labelled."""
        return PortLabelling(self.cage if self.labels == "cage/port" else 0, self.split)

    @property
    def port_count(self) -> int:
        """The number of ports; split ports count singly."""
        return self.ports * self.split


class SwitchListFile(StrictModel):
    """A CSV file of the repository with one switch a line and the columns name, rack, u, guid; others are ignored.

    Only switches whose names follow the tier's pattern are read. The numbers in their names give the order. `file`: its
    path below the repository.
    """

    file: CsvPath


class GuidSequence(StrictModel):
    """Consecutive GUIDs: `first`, `first` + `step` and so on."""

    first: DeviceGuid
    step: int = Field(default=1, gt=0)


class SwitchSpread(StrictModel):
    """Switches at regular places: `count` switches, `per_rack` in each rack, `u_step` units apart, from `u` upwards.

    `rack` may use `{rack}`, a number that starts at `first_rack`. `guids` is a list in order, or a sequence.
    """

    count: int = Field(gt=0, le=MAX_SWITCHES)
    rack: RackName
    first_rack: int = Field(default=1, ge=0)
    per_rack: int = Field(default=1, gt=0)
    u: int = Field(gt=0)
    u_step: int = Field(default=1, gt=0)
    guids: list[DeviceGuid] | GuidSequence

    def switches(self) -> list[FabricSwitch]:
        """Return the switches in order. Raises ValueError if the number of listed GUIDs is not `count`."""
        if isinstance(self.guids, list) and len(self.guids) != self.count:
            raise ValueError(f"guids: {len(self.guids)} GUIDs for {self.count} switches")
        switches = []
        for number in range(self.count):
            rack, place = divmod(number, self.per_rack)
            if isinstance(self.guids, list):
                guid = self.guids[number]
            else:
                guid = f"0x{int(self.guids.first, 16) + number * self.guids.step & (1 << 64) - 1:016x}"
            name = self.rack.format(rack=self.first_rack + rack)
            switches.append(FabricSwitch(guid=guid, rack=name, u=self.u + place * self.u_step))
        return switches


def expand_switches(at: Any) -> Any:
    """Return a SwitchSpread as a list of switches; anything that is no mapping unchanged.

    Raises ValueError for a mapping that is no valid spread, and for a SwitchListFile: the repository reader expands it.
    """
    if not isinstance(at, dict):
        return at
    try:
        if "file" in at:
            SwitchListFile.model_validate(at)
            raise ValueError("the file is read from the fleet repository only")
        return SwitchSpread.model_validate(at).switches()
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


SwitchList = Annotated[list[FabricSwitch], Field(min_length=1)]
SwitchPlaces = Annotated[
    SwitchList, BeforeValidator(expand_switches, json_schema_input_type=SwitchList | SwitchSpread | SwitchListFile)
]
"""The places of a tier's switches: a list, a SwitchSpread, or a SwitchListFile (read by declare/switch_lists.py)."""


TierName = Literal["leaves", "spines", "cores"]


class LeafTier(StrictModel):
    """The first tier. `name` may use `{unit}` and `{rail}`, or `{index}`; `at` lists unit 1's rails, then unit 2's.

    A number may be added, here and in the other tiers: rails count from 0, so `{rail+1:02}` gives 01, 02 and so on. All
    else counts from 1 (`{unit-1}`: from 0). `{index}` counts all leaves; units that are not built keep their numbers.

    `down`: the ports to nodes, in order, such as `1..32`, or `1..12,25..36`. `up`: the ports to spines.
    `absent_units`: units that are not built, by number. They have no nodes and no leaves, but keep their ports on the
    spines.
    """

    name: LeafName
    down: PortRange
    up: PortRange
    absent_units: list[Annotated[int, Field(ge=1, le=MAX_SWITCHES)]] = Field(default=[])
    at: SwitchPlaces


class SpineTier(StrictModel):
    """The second tier; `per_pair` cables join a spine and each leaf of its group.

    `trunk`: how these cables lie on the ports of the leaf. `together`: the first ports all lead to the first spine.
    `spread`: one port leads to each spine, and then again one to each.

    With `group: all`, all spines and leaves form one group. With `group: rail`, each rail has a group in each pod of
    `pod` units (0: one pod of all units). `down` and `up` are needed where there are cores. `name` may use `{index}`,
    or `{pod}`, `{rail}` and `{number}` within the group; all but the rail count from 1. `at` lists group by group,
    pods first, then rails. `oversubscription` is a spine's bandwidth down divided by its bandwidth up, at least 1.
    """

    name: SpineName
    per_pair: int = Field(gt=0)
    trunk: Literal["together", "spread"] = "together"
    group: Literal["all", "rail"] = "all"
    pod: int = Field(default=0, ge=0)
    down: PortRange | None = None
    up: PortRange | None = None
    oversubscription: float = Field(default=1.0, ge=1)
    at: SwitchPlaces


class CoreTier(StrictModel):
    """The third tier; `per_pair` cables join a core and each spine of its plane.

    Plane 1 has the first spine of each group, plane 2 the second, and so on. With `plane: all`, one plane has all
    spines. `name` may use `{index}`, or `{plane}` and `{number}` within the plane, all counted from 1. `at` lists plane
    by plane.
    """

    name: CoreName
    per_pair: int = Field(gt=0)
    plane: Literal["number", "all"] = "number"
    at: SwitchPlaces


class CableLengths(StrictModel):
    """Cable lengths in metres, by tier; 0 means not given.

    `node_leaf`, `leaf_spine`, `spine_core`: the length of the cables between the two.
    """

    node_leaf: float = Field(default=0, ge=0)
    leaf_spine: float = Field(default=0, ge=0)
    spine_core: float = Field(default=0, ge=0)


class CableRates(StrictModel):
    """The rates of each tier's cables; None means the design's rate.

    `node_leaf`, `leaf_spine`, `spine_core`: width and speed of the cables between the two, such as `4xNDR`.
    """

    node_leaf: LinkRate | None = None
    leaf_spine: LinkRate | None = None
    spine_core: LinkRate | None = None
