"""A discovery that keeps its ports as the text that they were printed as, until somebody needs more.

A fabric of 49,152 cables is nearly always as designed. Telling so needs no object a cable: the rows of a device are
equal to the designed rows, or a few of them are not (`diff_rows`). What a Discovery promises beyond that (cables, devices,
contradictions between the two ends) is made when it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.link_rates_and_states import parse_rate
from assay.fabric.readers.port_listing import PortEnds, check_has_cables, format_port, join_ends
from assay.model.fabric.ports_and_cables import DeviceKind, PortId

PortRow = tuple[str, str, str, str]
"""One end of a cable: the port's number, the GUID (16 hex digits) and the port at the other end, the rate."""

PortRows = Mapping[str, Sequence[PortRow]]
"""The rows of each device, by its GUID's 16 hex digits, in the order of the ports."""


DeviceHead = tuple[DeviceKind, str, str]
"""What a device's record begins with: its kind, and as text its number of ports and its description."""


class RowDiff(NamedTuple):
    """Ends that are designed and not found, and ends that are found and not designed, each with its device."""

    missing: list[tuple[str, PortRow]]
    unexpected: list[tuple[str, PortRow]]


class LazyDiscovery(FabricDiscovery):
    """A text in which every line was understood. Whether its two sides agree is found out by `problems`."""

    def __init__(self, heads: Mapping[str, DeviceHead], rows: PortRows, said: Iterable[str] = ()) -> None:
        self.__dict__.update(heads=heads, rows=rows, said=list(said), facts={}, events=(), temperatures={})

    heads: Mapping[str, DeviceHead]
    rows: PortRows
    said: list[str]

    @cached_property
    def devices(self) -> Mapping[str, DiscoveredDevice]:
        """Every device by GUID."""
        return {
            f"0x{digits}": DiscoveredDevice(f"0x{digits}", kind, int(ports), description.strip())
            for digits, (kind, ports, description) in self.heads.items()
        }

    @cached_property
    def cables(self) -> Sequence[DiscoveredCable]:
        """Every cable once."""
        return self._joined[0]

    @cached_property
    def problems(self) -> Sequence[str]:
        """What was not read, or contradicts itself."""
        return tuple(self._joined[1])

    @cached_property
    def _joined(self) -> tuple[list[DiscoveredCable], list[str]]:
        problems = list(self.said)
        cables = join_ends(self._ends(problems), self.devices, problems)
        return cables, check_has_cables(cables, problems)

    def _ends(self, problems: list[str]) -> PortEnds:
        """Return each port's other end. A port is one object however often it is named: there are many of them."""
        ends: PortEnds = {}
        port = lru_cache(None)(lambda digits, number: PortId(f"0x{digits}", int(number)))
        for digits, rows in self.rows.items():
            for number, far, far_number, rate in rows:
                here = port(digits, number)
                if here in ends:
                    problems.append(f"{format_port(here)} is listed twice")
                if not parse_rate(rate):
                    problems.append(f"{format_port(here)}: no rate in {rate!r}")
                ends[here] = (port(far, far_number), rate if parse_rate(rate) else "")
        return ends


def diff_rows(found: PortRows, expected: PortRows) -> RowDiff:
    """Return where two listings differ. A row in neither list is printed and designed alike, at this end of it.

    A row that was printed twice is strange once more.
    """
    lacking: list[tuple[str, PortRow]] = []
    strange: list[tuple[str, PortRow]] = []
    if found == expected:
        return RowDiff(lacking, strange)
    for digits, rows in found.items():
        designed = expected.get(digits, ())
        if rows != designed:
            seen, known = set(rows), set(designed)
            lacking += [(digits, row) for row in designed if row not in seen]
            strange += [(digits, row) for row in rows if row not in known]
            strange += (
                [(digits, row) for row, times in Counter(rows).items() if times > 1] if len(seen) < len(rows) else []
            )
    lacking += [(digits, row) for digits, rows in expected.items() if digits not in found for row in rows]
    return RowDiff(lacking, strange)
