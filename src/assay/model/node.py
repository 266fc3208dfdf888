"""One host of the inventory. Plain data: pydantic is loaded only with a node's settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING

from assay.model.facts import frozen

if TYPE_CHECKING:  # loads pydantic: modules that only pass nodes on start faster without it
    from assay.model.specs.node_settings import NodeSettings, PoolCapacity


@cache
def _default_settings() -> NodeSettings:
    from assay.model.specs.node_settings import NodeSettings

    return NodeSettings()


@frozen
class Node:
    """One host: what identifies the machine, where it stands, what it must be, and its settings.

    `spec` names a NodeSpec, `profile` a ManagementProfile. `hca_guids` are in rail order. `bmc_address` is a host name
    or IP address without port, "" if the node has no BMC. `image` is the label of the Image that it boots,
    `NAME:VERSION:DIGEST`, "" if none is declared. Nodes of one pool with equal settings share one object.
    """

    name: str
    pool: str
    site: str
    rack: str
    u: int
    serial: str
    spec: str
    profile: str
    hca_guids: tuple[str, ...] = ()
    bmc_address: str = ""
    mac: str = ""
    bmc_mac: str = ""
    image: str = ""
    settings: NodeSettings = field(default_factory=_default_settings)

    @property
    def rack_place(self) -> tuple[str, str]:
        """Site and rack: rack names are unique within a site only."""
        return (self.site, self.rack)

    @property
    def boot_macs(self) -> tuple[str, ...]:
        """The MAC addresses from which the machine may boot, in lower case, each once."""
        network = self.settings.node_network
        links = [link.mac for link in network.ethernets.values()] if network else []
        return tuple(dict.fromkeys(mac.lower() for mac in (self.mac, *links) if mac))

    @property
    def subject(self) -> str:
        """The node's subject id, `h100-a/n0007`."""
        return f"{self.pool}/{self.name}"


def list_capacities(nodes: Iterable[Node]) -> dict[str, PoolCapacity]:
    """Return what pools deliver, by pool; of those that declare it."""
    return {node.pool: node.settings.capacity for node in nodes if node.settings.capacity}
