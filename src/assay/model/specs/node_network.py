"""The network of a node as its inventory declares it. It becomes cloud-init's network configuration, version 2."""

from __future__ import annotations

from ipaddress import ip_address, ip_interface
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from assay.model.specs.spec_document import StrictModel

BOND_MODES = Literal["802.3ad", "active-backup", "balance-xor"]
InterfaceName = Annotated[str, Field(pattern=r"^[a-zA-Z][a-zA-Z0-9_.-]{0,14}$")]


def _check_address(address: str) -> str:
    if "/" not in address:
        raise ValueError(f"{address} has no prefix length, such as /24")
    ip_interface(address)
    return address


def _check_host(address: str) -> str:
    ip_address(address)
    return address


Address = Annotated[str, AfterValidator(_check_address)]
HostAddress = Annotated[str, AfterValidator(_check_host)]
Gateway = Annotated[str, AfterValidator(lambda address: address and _check_host(address))]


class NetworkLink(StrictModel):
    """What each link may have: addresses with prefix length, a gateway for all other networks, an MTU.

    `dhcp`: it asks for an address. `addresses`: fixed ones. `gateway`: the default route. `mtu`: in bytes.
    """

    dhcp: bool = False
    addresses: list[Address] = Field(default=[])
    gateway: Gateway = ""
    mtu: int | None = Field(default=None, ge=576, le=65520)


class EthernetLink(NetworkLink):
    """A physical interface, found by its MAC address and named as its key says.

    `mac`: its address; without it the interface must have the name already. `rail`: an IP address for the InfiniBand
    adapter of this rail is given to it.
    """

    mac: str = Field(default="", pattern=r"^$|^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$")
    rail: int | None = Field(default=None, ge=0, le=63)


class BondLink(NetworkLink):
    """Several interfaces as one. `interfaces`: their names. `mode`: how they share the traffic."""

    interfaces: list[InterfaceName] = Field(min_length=1)
    mode: BOND_MODES = "802.3ad"


class VlanLink(NetworkLink):
    """A VLAN. `id`: its number. `link`: the interface or bond below it."""

    id: int = Field(ge=1, le=4094)
    link: InterfaceName


class NodeNetwork(StrictModel):
    """Every link of a node by name.

    `ethernets`: physical interfaces. `bonds`: of several interfaces. `vlans`: on interfaces or bonds. `nameservers`:
    DNS servers. `search`: DNS domains.
    """

    ethernets: dict[InterfaceName, EthernetLink] = Field(default={})
    bonds: dict[InterfaceName, BondLink] = Field(default={})
    vlans: dict[InterfaceName, VlanLink] = Field(default={})
    nameservers: list[HostAddress] = Field(default=[])
    search: list[str] = Field(default=[])

    @model_validator(mode="after")
    def _links_exist(self) -> NodeNetwork:
        known = {*self.ethernets, *self.bonds}
        below = [(name, one) for name, bond in self.bonds.items() for one in bond.interfaces]
        for name, link in [*below, *((name, vlan.link) for name, vlan in self.vlans.items())]:
            if link not in known:
                raise ValueError(f"{name} stands on {link}, which is neither an interface nor a bond")
        return self
