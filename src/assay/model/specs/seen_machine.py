"""What a machine says of itself before it is a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

MOST_CHARACTERS = 200
"""Of one text. A machine may say anything, and the rest helps nobody."""


@dataclass(frozen=True, slots=True)
class SeenMachine:
    """One machine, by its BMC. "" or 0: it is not known."""

    address: str = ""
    """The address of its BMC."""
    bmc_mac: str = ""
    """The MAC address of its BMC, in lower case with colons."""
    serial: str = ""
    """Its serial number."""
    vendor: str = ""
    """Its vendor."""
    model: str = ""
    """Its model."""
    fingerprint: str = ""
    """The digest (`sha256:…`) of its BMC's certificate."""
    rack: str = ""
    """The rack where its own BMC says that it stands."""
    u: int = 0
    """The place in that rack, in rack units."""
    mac: str = ""
    """The MAC address of the interface that it boots from."""

    @property
    def key(self) -> str:
        """What it is found again by: its serial number, else a MAC address, else the address."""
        return self.serial or self.bmc_mac or self.mac or self.address

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        """Return what `as_json` gave."""
        return cls(**{field.name: plain[field.name] for field in fields(cls) if field.name in plain})

    @classmethod
    def parse(cls, plain: Mapping[str, Any]) -> Self:
        """Return a machine from what it says of itself. Unknown keys are left out; texts are cut, and printable."""
        known = {field.name: plain[field.name] for field in fields(cls) if plain.get(field.name) is not None}
        texts = {name: _clean(value) for name, value in known.items() if name != "u"}
        macs = {name: texts[name].lower().replace("-", ":") for name in ("bmc_mac", "mac") if name in texts}
        return cls(**(texts | macs), u=_parse_unit(known.get("u")))

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, without what is not known."""
        return {name: value for name, value in asdict(self).items() if value}


def _clean(value: Any) -> str:
    """Return a text that does nothing to a terminal."""
    return "".join(char for char in str(value)[:MOST_CHARACTERS] if char.isprintable()).strip()


def _parse_unit(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value <= 60 else 0
