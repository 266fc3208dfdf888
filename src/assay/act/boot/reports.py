"""Reads what others say of machines: the report of a DHCP server or another tool (JSON)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, IPvAnyAddress, ValidationError, model_validator

from assay.model.errors import AssayError
from assay.model.outside_documents import describe_mistakes
from assay.model.specs.machines import MOST_CHARACTERS, SeenMachine
from assay.model.specs.node_settings import MacAddress

MOST_MACHINES = 1000
"""Of one report."""
SaidText = Annotated[str, Field(max_length=MOST_CHARACTERS)]


class ReportedMachine(BaseModel):
    """A machine that somebody saw: at least its serial number or a MAC address.

    `bmc_mac`, `address`: of its BMC. `mac`: of the interface that it boots from. `rack`, `u`: where it stands, its
    lowest rack unit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    serial: Annotated[str, Field(max_length=64)] = ""
    bmc_mac: MacAddress | None = None
    mac: MacAddress | None = None
    address: IPvAnyAddress | None = None
    vendor: SaidText = ""
    model: SaidText = ""
    rack: SaidText = ""
    u: int | None = Field(default=None, strict=True, ge=1, le=60)

    @model_validator(mode="after")
    def _has_identity(self) -> ReportedMachine:
        if not (self.serial.strip() or self.bmc_mac or self.mac):
            raise ValueError("give its serial, its bmc_mac or its mac")
        return self


class MachineReport(BaseModel):
    """The machines that a tool saw."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machines: list[ReportedMachine] = Field(min_length=1, max_length=MOST_MACHINES)


def parse_machine_report(body: bytes) -> list[SeenMachine]:
    """Return the machines of a report. Raises AssayError, which names the fields and shows nothing of their values."""
    try:
        report = MachineReport.model_validate_json(body)
    except (ValidationError, RecursionError) as error:
        deep = "the body: it is nested too deeply"
        mistakes = describe_mistakes(error, "the body") if isinstance(error, ValidationError) else deep
        raise AssayError(f"no report of machines: {mistakes}"[:600]) from None
    return [SeenMachine.parse(machine.model_dump(mode="json")) for machine in report.machines]
