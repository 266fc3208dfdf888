"""A discovery that keeps its ports as the text that they were printed as, until somebody needs more.

A fabric of 49,152 cables is nearly always as designed. Telling so needs no object a cable: the rows of a device are
equal to the designed rows, or a few of them are not (`apart`). What a Discovery promises beyond that (cables, devices,
contradictions between the two ends) is made when it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from assay.fabric.discovery import Discovery, FoundCable, FoundDevice
from assay.fabric.ends import Ends, cables_of, named, whole
from assay.fabric.rate import rate_of
from assay.model.cable import DeviceKind, Port

Row = tuple[str, str, str, str]
"""One end of a cable: the port's number, the GUID (16 hex digits) and the port at the other end, the rate."""

Rows = Mapping[str, Sequence[Row]]
"""The rows of each device, by its GUID's 16 hex digits, in the order of the ports."""


Head = tuple[DeviceKind, str, str]
"""What a device's record begins with: its kind, and as text its number of ports and its description."""


class Apart(NamedTuple):
    """Ends that are designed and not found, and ends that are found and not designed, each with its device."""

    lacking: list[tuple[str, Row]]
    strange: list[tuple[str, Row]]


class ListedDiscovery(Discovery):
    """A text in which every line was understood. Whether its two sides agree is found out by `problems`."""

    def __init__(self, heads: Mapping[str, Head], rows: Rows, said: Iterable[str] = ()) -> None:
        self.__dict__.update(heads=heads, rows=rows, said=list(said), facts={}, events=(), temperatures={})

    heads: Mapping[str, Head]
    rows: Rows
    said: list[str]

    @cached_property
    def devices(self) -> Mapping[str, FoundDevice]:
        """Every device by GUID."""
        return {
            f"0x{digits}": FoundDevice(f"0x{digits}", kind, int(ports), description.strip())
            for digits, (kind, ports, description) in self.heads.items()
        }

    @cached_property
    def cables(self) -> Sequence[FoundCable]:
        """Every cable once."""
        return self._joined[0]

    @cached_property
    def problems(self) -> Sequence[str]:
        """What was not read, or contradicts itself."""
        return tuple(self._joined[1])

    @cached_property
    def _joined(self) -> tuple[list[FoundCable], list[str]]:
        problems = list(self.said)
        cables = cables_of(self._ends(problems), self.devices, problems)
        return cables, whole(cables, problems)

    def _ends(self, problems: list[str]) -> Ends:
        """Return each port's other end. A port is one object however often it is named: there are many of them."""
        ends: Ends = {}
        port = lru_cache(None)(lambda digits, number: Port(f"0x{digits}", int(number)))
        for digits, rows in self.rows.items():
            for number, far, far_number, rate in rows:
                here = port(digits, number)
                if here in ends:
                    problems.append(f"{named(here)} is listed twice")
                if not rate_of(rate):
                    problems.append(f"{named(here)}: no rate in {rate!r}")
                ends[here] = (port(far, far_number), rate if rate_of(rate) else "")
        return ends


def apart(found: Rows, expected: Rows) -> Apart:
    """Return where two listings differ. A row in neither list is printed and designed alike, at this end of it.

    A row that was printed twice is strange once more.
    """
    lacking: list[tuple[str, Row]] = []
    strange: list[tuple[str, Row]] = []
    if found == expected:
        return Apart(lacking, strange)
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
    return Apart(lacking, strange)
