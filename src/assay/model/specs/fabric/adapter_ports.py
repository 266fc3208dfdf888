"""Which port of which adapter each rail of a node is, in fabrics where adapters have several cabled ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from assay.model.errors import FieldConflict

AdapterPort = Annotated[str, Field(pattern=r"^\d{1,2}/[1-9]\d?$")]


class RailPort(NamedTuple):
    """The port of a rail: the number of its adapter in the node, from 0, and its own number there, from 1."""

    adapter: int
    port: int


def list_rail_ports(rails: int, ports: Sequence[AdapterPort]) -> list[RailPort]:
    """Return the port of each rail; without `ports`, each rail has an adapter of its own."""
    written = [RailPort(*map(int, text.split("/"))) for text in ports]
    return written or [RailPort(rail, 1) for rail in range(rails)]


def count_adapter_ports(rail_ports: Sequence[RailPort], planes: int) -> int:
    """Return how many ports an adapter has, as far as a design uses them."""
    return max((port for _, port in rail_ports), default=1) * planes


def find_adapter_port_conflicts(rails: int, ports: Sequence[AdapterPort], planes: int) -> Iterator[FieldConflict]:
    """Find rails without a port, ports of two rails, adapters that are left out, and planes beside such ports."""
    given = list_rail_ports(0, ports)
    if given and len(given) != rails:
        yield _refuse("ASY0084", f"{len(given)} ports of adapters for {rails} rails", "give one for each rail")
    if len(set(given)) < len(given):
        yield _refuse("ASY0080", "one port is two rails", "give each rail a port of its own")
    if set(range(max((adapter for adapter, _ in given), default=-1))) - {adapter for adapter, _ in given}:
        yield _refuse("ASY0084", "an adapter is left out", "count the adapters from 0, without a gap")
    if given and planes > 1:
        yield _refuse("ASY0084", "an adapter's ports are its planes or its rails", "remove one of the two")


def _refuse(code: str, message: str, fix: str) -> FieldConflict:
    return FieldConflict(code, ("adapter_ports",), message, fix)
