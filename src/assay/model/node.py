"""One host of the inventory, as the rest of assay sees it. Plain data, without pydantic."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loads pydantic, which nothing needs that only passes nodes on
    from assay.model.specs.node_settings import NodeSettings


@cache
def _default_settings() -> NodeSettings:
    from assay.model.specs.node_settings import NodeSettings

    return NodeSettings()


@dataclass(frozen=True, slots=True)
class Node:
    """One host: what identifies the machine and where it stands, and the settings that it shares with its pool.

    `spec` names its NodeSpec, `profile` its ManagementProfile. `hca_guids` are in rail order. `bmc_address` is a host
    name or IP address without port, "" where the node has no BMC. Nodes with equal settings share one object.
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
    settings: NodeSettings = field(default_factory=_default_settings)

    @property
    def subject(self) -> str:
        """The node's subject id, `h100-a/n0007`."""
        return f"{self.pool}/{self.name}"
