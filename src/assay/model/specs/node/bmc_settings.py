"""The settings of a node's BMC that a node spec may declare."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from assay.model.specs.spec_document import StrictModel

HostName = Annotated[str, Field(pattern=r"^[\w.:-]+$")]


class BmcNtpSpec(StrictModel):
    """Where the BMC gets its time. A field that is not given is not checked.

    `enabled`: whether the BMC uses NTP. `servers`: all NTP servers that are set on the BMC, by name or address, in any
    order. Servers that the BMC learns by DHCP do not count.
    """

    enabled: bool | None = None
    servers: list[HostName] | None = None


class BmcSpec(StrictModel):
    """The settings of the BMC itself. A field that is not given is not checked.

    `power_restore`: what the node does when its power comes back (Redfish's PowerRestorePolicy). `ntp`: where the BMC
    gets its time.
    """

    power_restore: Literal["AlwaysOn", "AlwaysOff", "LastState"] | None = None
    ntp: BmcNtpSpec = Field(default=BmcNtpSpec())
