"""A visitor of the pages and the API: who it is, what it may see, and which orders it may give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from assay.model.facts import frozen
from assay.model.specs.serving import VisitorRights, VisitorRole

ORDERS_OF_ROLES: dict[VisitorRole, frozenset[str]] = {
    "viewer": frozenset(),
    "customer": frozenset({"operation"}),
    "technician": frozenset({"certify", "done"}),
    "operator": frozenset({"certify", "done", "hold", "release", "pause", "resume", "approve", "decline", "operation"}),
}


class PooledNode(Protocol):
    """A node, or its state: anything that is in a pool."""

    @property
    def pool(self) -> str:
        """The name of the pool."""


@frozen
class Visitor:
    """Who asks. `pools`: those of a customer, empty for everybody else."""

    name: str
    role: VisitorRole
    pools: frozenset[str] = frozenset()

    @property
    def anonymous(self) -> Visitor:
        """A visitor with the same rights and no name: what is made for it may be shown to all who have them."""
        return replace(self, name="")

    @property
    def rights(self) -> tuple[str, ...]:
        """The role, and the pools in order."""
        return self.role, *sorted(self.pools)

    @property
    def is_customer(self) -> bool:
        """Whether it gets plain words about its own nodes, and nothing of others."""
        return self.role == "customer"

    @property
    def sees(self) -> Callable[[PooledNode], bool] | None:
        """Which nodes a customer may know of; None for everybody else."""
        return self.may_see if self.is_customer else None

    def may_see(self, node: PooledNode) -> bool:
        """Whether it may know of a node. Of others, it must not even learn that they exist."""
        return not self.is_customer or node.pool in self.pools

    def may_order(self, order: str = "") -> bool:
        """Whether it may give this order; without one, whether it may give any."""
        allowed = ORDERS_OF_ROLES[self.role]
        return order in allowed if order else bool(allowed)


LOCAL_READER = Visitor("local-reader", "viewer")
"""Who reads where nobody is declared."""


def make_visitor(name: str, rights: VisitorRights) -> Visitor:
    """Return the visitor of this name."""
    return Visitor(name, rights.role, frozenset(rights.pools))
