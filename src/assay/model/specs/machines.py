"""ExpectedMachines: what a vendor ships, by serial number, before it is plugged in.

What a machine says of itself before it is a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from assay.model.facts import fact, shown
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.image import SHA256
from assay.model.specs.node_settings import HcaGuid, MacAddress
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel


class ExpectedMachine(StrictModel):
    """One machine of a delivery, as the vendor's list has it.

    `serial_number`: as printed on the machine and as its BMC gives it. `bmc_mac`, `mac`: of the BMC, and of the
    interface that it boots from. `name`: the node that it becomes. `rack`, `u`: where it belongs, its lowest rack unit.
    `top_u`: its highest one, where the list says it; it must fit `height_u` of the node spec. `pdu`: the PDU, or the
    pair of PDUs, that feeds it. `hca_guids`: in rail order. `endorsement_key_sha256`: the digest of the public key
    (DER) of its TPM's endorsement key, where the vendor lists it. `bmc_credentials`: the machine's own factory
    credentials, where each has others.
    """

    serial_number: str = Field(min_length=1, max_length=64)
    name: SpecName
    bmc_mac: MacAddress
    mac: MacAddress | None = None
    rack: str = Field(min_length=1)
    u: int = Field(ge=1, le=60)
    top_u: int | None = Field(default=None, ge=1, le=60)
    pdu: str = ""
    hca_guids: list[HcaGuid] = Field(default=[])
    endorsement_key_sha256: str = Field(default="", pattern=rf"^$|{SHA256}")
    bmc_credentials: CredentialReference | None = None


class ExpectedMachines(SpecDocument):
    """A delivery: machines of one model for one pool.

    - `vendor`, `model`: as the BMC gives them (Redfish `Manufacturer` and `Model`).
    - `pool`, `site`, `node_spec`, `profile`: of the nodes that the machines become.
    - `factory_credentials`: where the `user:password` is with which the BMCs are shipped. assay changes it once.
    - `order`: the purchase order or delivery note, for people.

    `machines`: each machine.
    """

    kind: Literal["ExpectedMachines"]
    order: str = ""
    vendor: str = Field(min_length=1)
    model: str = Field(min_length=1)
    pool: SpecName
    site: str = Field(min_length=1)
    node_spec: SpecName
    profile: SpecName
    factory_credentials: CredentialReference | None = None
    machines: list[ExpectedMachine] = Field(min_length=1)

    @model_validator(mode="after")
    def _machines_differ(self) -> ExpectedMachines:
        for field in ("serial_number", "name", "bmc_mac"):
            values = Counter(str(getattr(machine, field)).lower() for machine in self.machines)
            if twice := [value for value, count in values.items() if count > 1]:
                raise ValueError(f"{field} {twice[0]} stands twice")
        return self


MOST_CHARACTERS = 200
"""Of one text. A machine may say anything, and the rest helps nobody."""


@fact
class SeenMachine:
    """One machine, by its BMC. "" or 0: it is not known."""

    address: str = shown(omit_stored=True, default="")
    """The address of its BMC."""
    bmc_mac: str = shown(omit_stored=True, default="")
    """The MAC address of its BMC, in lower case with colons."""
    serial: str = shown(omit_stored=True, default="")
    """Its serial number."""
    vendor: str = shown(omit_stored=True, default="")
    """Its vendor."""
    model: str = shown(omit_stored=True, default="")
    """Its model."""
    fingerprint: str = shown(omit_stored=True, default="")
    """The digest (`sha256:…`) of its BMC's certificate."""
    rack: str = shown(omit_stored=True, default="")
    """The rack where its own BMC says that it stands."""
    u: int = shown(omit_stored=True, default=0)
    """The place in that rack, in rack units."""
    mac: str = shown(omit_stored=True, default="")
    """The MAC address of the interface that it boots from."""

    @property
    def key(self) -> str:
        """What it is found again by: its serial number, else a MAC address, else the address."""
        return self.serial or self.bmc_mac or self.mac or self.address

    @classmethod
    def parse(cls, plain: Mapping[str, Any]) -> Self:
        """Return a machine from what it says of itself. Unknown keys are left out; texts are cut, and printable."""
        known = {field.name: plain[field.name] for field in fields(cls) if plain.get(field.name) is not None}
        texts = {}
        for name, value in known.items():
            if name != "u":
                texts[name] = "".join(filter(str.isprintable, str(value)[:MOST_CHARACTERS])).strip()
        macs = {name: texts[name].lower().replace("-", ":") for name in ("bmc_mac", "mac") if name in texts}
        u = known.get("u")
        return cls(**(texts | macs), u=u if isinstance(u, int) and 0 < u <= 60 else 0)
