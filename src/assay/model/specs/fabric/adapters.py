"""AdapterNames: how InfiniBand adapters announce the host that they are in, as data.

Which port of which adapter each rail of a node is, in fabrics where adapters have several cabled ports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from assay.model.errors import FieldConflict
from assay.model.specs.spec_document import SpecDocument, StrictModel


class HostAdapter(NamedTuple):
    """The host that an adapter is in, and the host's name for it. `rail` is its place in a list, -1 without one."""

    host: str
    slot: str
    rail: int = -1


def _check_pattern(text: str) -> str:
    try:
        groups = re.compile(text).groupindex.keys()
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
    if groups != {"host", "slot"}:
        raise ValueError(f"{text!r} has not exactly the groups `host` and `slot`: write (?P<host>…) and (?P<slot>…)")
    return text


class AdapterNamePattern(StrictModel):
    """One way to write an adapter's name.

    `pattern`: a regular expression (Python) for the whole text, with the groups `host` and `slot`. `slot` is the
    adapter's name in its host, such as mlx5_3.
    """

    pattern: Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_check_pattern)]
    source: str


class AdapterNames(SpecDocument):
    """How adapters announce themselves (NodeDesc). `assay fabric learn` tells by it which adapters a host has.

    `patterns`: by name, the first that fits counts. `no_hosts`: texts that stand for no host.
    """

    kind: Literal["AdapterNames"]
    patterns: dict[str, AdapterNamePattern] = Field(min_length=1)
    no_hosts: list[str] = Field(default=[])

    def read(self, text: str) -> HostAdapter | None:
        """Return what an adapter's text says of its host, None where no pattern fits."""
        match = next(filter(None, (pattern.fullmatch(text) for pattern in self._compiled)), None)
        return HostAdapter(match["host"], match["slot"]) if match and match["host"] not in self.no_hosts else None

    @cached_property
    def _compiled(self) -> list[re.Pattern[str]]:
        return [re.compile(entry.pattern) for entry in self.patterns.values()]


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
