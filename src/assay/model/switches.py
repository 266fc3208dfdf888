"""The switches of a design: what they are, and where each stands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from assay.model.explicit import Guid
from assay.model.labels import Labels
from assay.model.spec import Strict

LabelRule = Literal["number", "cage/port"]
MOST = 10_000  # switches of one tier
File = Annotated[str, Field(pattern=r"^[^/.][^\\]*\.csv$")]
RackName = Annotated[str, Field(pattern=r"^([^{}]|\{rack(:0?\d)?\})+$")]


class Switch(Strict):
    """One switch: its GUID and its place. `name` where the tier's pattern does not give it."""

    guid: Guid
    rack: str
    u: int = Field(gt=0)
    name: str = ""


class SwitchModel(Strict):
    """The switch of the fabric. Label rule `cage/port`: `cage` ports a cage, so port 33 reads `17/1` (QM9700).

    `split` 2 makes two ports of each of its `ports`, numbered and labelled one by one: port 65 then reads `17/1/1`.
    """

    product: str
    ports: int = Field(gt=0, le=4096)
    labels: LabelRule = "number"
    cage: int = Field(default=2, gt=0, le=8)
    split: int = Field(default=1, gt=0, le=8)

    def label(self, port: int) -> str:
        """Return what is printed at a port."""
        return self.printed.label(port)

    @property
    def printed(self) -> Labels:
        """How its ports are labelled."""
        return Labels(self.cage if self.labels == "cage/port" else 0, self.split)

    @property
    def most(self) -> int:
        """How many ports it has, split ones counted singly."""
        return self.ports * self.split


class Listing(Strict):
    """A CSV file of the repository: one switch a line, with the columns name, rack, u, guid, and any others.

    Those whose names follow the tier's pattern are taken, in the order that the pattern gives them.
    """

    file: File


class GuidSteps(Strict):
    """GUIDs that count: `first`, `first` + `step` and so on."""

    first: Guid
    step: int = Field(default=1, gt=0)


class Spread(Strict):
    """Switches that stand regularly: `count` of them, `per_rack` in each rack, `u_step` units apart from `u` on.

    `rack` may use `{rack}`, counted from `first_rack`. `guids` lists them in order, or counts.
    """

    count: int = Field(gt=0, le=MOST)
    rack: RackName
    first_rack: int = Field(default=1, ge=0)
    per_rack: int = Field(default=1, gt=0)
    u: int = Field(gt=0)
    u_step: int = Field(default=1, gt=0)
    guids: list[Guid] | GuidSteps

    def switches(self) -> list[Switch]:
        """Return the switches, in order."""
        if isinstance(self.guids, list) and len(self.guids) != self.count:
            raise ValueError(f"guids: {len(self.guids)} GUIDs for {self.count} switches")
        return [self._switch(number) for number in range(self.count)]

    def _switch(self, number: int) -> Switch:
        rack, place = divmod(number, self.per_rack)
        name = self.rack.format(rack=self.first_rack + rack)
        return Switch(guid=self._guid(number), rack=name, u=self.u + place * self.u_step)

    def _guid(self, number: int) -> str:
        if isinstance(self.guids, list):
            return self.guids[number]
        return f"0x{int(self.guids.first, 16) + number * self.guids.step & (1 << 64) - 1:016x}"


def spread(at: Any) -> Any:
    """Return the switches that stand regularly one by one; anything else as it is."""
    if not isinstance(at, dict):
        return at
    try:
        if "file" in at:
            Listing.model_validate(at)
            raise ValueError("the file is read from the fleet repository only")
        return Spread.model_validate(at).switches()
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


Listed = Annotated[list[Switch], Field(min_length=1)]
Places = Annotated[Listed, BeforeValidator(spread, json_schema_input_type=Listed | Spread | Listing)]
"""Where a tier's switches stand: listed, regular, or in a file, whose lines the reader of the repository puts here."""
