"""The settings of a node's BMC that a node spec may declare."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.spec_document import StrictModel

HostName = Annotated[str, Field(pattern=r"^[\w.:-]+$")]
AccountName = Annotated[str, Field(pattern=r"^[\w.@-]+$", max_length=64)]


class BmcNtpSpec(StrictModel):
    """Where the BMC gets its time. A field that is not given is not checked.

    `enabled`: whether the BMC uses NTP. `servers`: all NTP servers that are set on the BMC, by name or address, in any
    order. Servers that the BMC learns by DHCP do not count.
    """

    enabled: bool | None = None
    servers: list[HostName] | None = None


class BmcSyslogSpec(StrictModel):
    """One server that the BMC sends its log to.

    `server`: its name or address. `port`: its port. `protocol`: how the messages travel, in Redfish's word.
    """

    server: HostName
    port: int = Field(ge=1, le=65535)
    protocol: Literal["SyslogTLS", "SyslogTCP", "SyslogUDP"]

    @property
    def text(self) -> str:
        """The server as assay shows it: `log.example:6514/SyslogTLS`."""
        return f"{self.address}/{self.protocol}"

    @property
    def uri(self) -> str:
        """The server as Redfish wants it."""
        return f"syslog://{self.address}"

    @property
    def address(self) -> str:
        """Name and port."""
        return f"[{self.server}]:{self.port}" if ":" in self.server else f"{self.server}:{self.port}"


class BmcAccountSpec(StrictModel):
    """One local account of the BMC. Its password is never in git.

    `role`: the role's id on the BMC, such as `ReadOnly`. `enabled`: whether the account may log in. `locked: false`:
    assay unlocks it when the BMC has locked it after wrong passwords; not given, that is not checked. `password`: where
    its password is. assay needs it to create the account, and sets it anew only when asked (docs/configuration.md).
    """

    role: str = Field(min_length=1)
    enabled: bool = True
    locked: Literal[False] | None = None
    password: CredentialReference | None = None


class BmcAccountsSpec(StrictModel):
    """The local accounts of the BMC, by user name.

    `users`: the accounts that it must have. `complete`: whether any other account must be disabled; the account of
    `bmc_credentials`, with which assay itself logs in, is left alone.
    """

    complete: bool = False
    users: dict[AccountName, BmcAccountSpec] = Field(default={})


class BmcSpec(StrictModel):
    """The settings of the BMC itself. A field that is not given is not checked.

    `power_restore`: what the node does when its power comes back (Redfish's PowerRestorePolicy). `ntp`: where the BMC
    gets its time. `syslog`: all servers that the BMC sends its log to by syslog. `accounts`: its local accounts.
    `ipmi_lan`: whether the BMC answers IPMI over its network. `network: separate`: nothing at the BMC's address
    answers the node, which its customers may use.
    """

    power_restore: Literal["AlwaysOn", "AlwaysOff", "LastState"] | None = None
    ntp: BmcNtpSpec = Field(default_factory=BmcNtpSpec)
    syslog: list[BmcSyslogSpec] | None = None
    accounts: BmcAccountsSpec = Field(default_factory=BmcAccountsSpec)
    ipmi_lan: bool | None = None
    network: Literal["separate"] | None = None
