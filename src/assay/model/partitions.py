"""Partitions of a fabric: which P_Keys the adapters of which nodes carry, as full or as limited members."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from assay.model.span import spelled_out
from assay.model.spec import Strict

FULL = 0x8000
"""The bit of a P_Key that makes its port a full member of the partition that the other 15 bits name: limited members
talk with full ones only (InfiniBand Architecture Specification, partitioning)."""

Membership = Literal["full", "limited"]
Base = Annotated[str, Field(pattern=r"^0x(000[1-9a-f]|00[1-9a-f][0-9a-f]|0[1-9a-f][0-9a-f]{2}|[1-7][0-9a-f]{3})$")]


class Partition(Strict):
    """Members of one partition: the adapters of `nodes` (names or ranges), or of every node where none is named.

    `pkey` has 15 bits, `0x7fff` is the default partition. A node that is a member in both ways takes two entries.
    """

    pkey: Base
    membership: Membership
    nodes: list[str] = Field(default=[])
    description: str = ""

    @property
    def key(self) -> int:
        """The P_Key as it stands in a port's table, with the bit of membership."""
        return int(self.pkey, 16) | (FULL if self.membership == "full" else 0)

    def has(self, node: str) -> bool:
        """Whether a node's adapters are such members."""
        return not self.nodes or node in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(name for entry in self.nodes for name in spelled_out(entry))
