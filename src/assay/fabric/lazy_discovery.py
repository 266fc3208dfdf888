"""A discovery that holds its ports as printed rows of text, and makes cables and devices on demand.

A fabric of 49,152 cables is nearly always as designed. To find that out, `compare/port_diff.py:diff_rows` compares
the rows of each device with the designed rows, without an object for each cable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.link_words import parse_rate
from assay.fabric.readers.link_end_matching import PortEnds, check_has_cables, format_port, join_ends
from assay.model.specs.fabric.cable import DeviceKind, PortId, normalize_guid

PortRow = tuple[str, str, str, str]
"""One end of a cable: the port's number, the GUID (16 hex digits) and the port at the other end, the rate."""

PortRows = Mapping[str, Sequence[PortRow]]
"""The rows of each device, by its GUID's 16 hex digits, in the order of the ports."""


DeviceHead = tuple[DeviceKind, str, str, str]
"""The head of a device's record: its kind, and as text its number of ports, description and system image GUID."""


class LazyDiscovery(FabricDiscovery):
    """A discovery from a text in which every line was understood. `stderr_problems` are those of the tool itself.

    Only `problems` checks whether the two ends of each cable agree.
    """

    def __init__(self, heads: Mapping[str, DeviceHead], rows: PortRows, stderr_problems: Iterable[str] = ()) -> None:
        self.__dict__.update(heads=heads, rows=rows, stderr_problems=list(stderr_problems), facts={}, temperatures={})

    heads: Mapping[str, DeviceHead]
    rows: PortRows
    stderr_problems: list[str]
    tells_rates = True

    @cached_property
    def devices(self) -> Mapping[str, DiscoveredDevice]:
        """Every device by GUID."""
        return {
            f"0x{digits}": DiscoveredDevice(f"0x{digits}", kind, int(ports), description.strip(), read_system(system))
            for digits, (kind, ports, description, system) in self.heads.items()
        }

    @cached_property
    def cables(self) -> Sequence[DiscoveredCable]:
        """Every cable once."""
        return self._joined[0]

    @cached_property
    def problems(self) -> Sequence[str]:
        """What could not be read, or contradicts itself."""
        return tuple(self._joined[1])

    @cached_property
    def _joined(self) -> tuple[list[DiscoveredCable], list[str]]:
        problems = list(self.stderr_problems)
        cables = join_ends(self._ends(problems), self.devices, problems)
        return cables, check_has_cables(cables, problems)

    def _ends(self, problems: list[str]) -> PortEnds:
        """Return each port's other end. Each port is one object, however often it is named: there are many of them."""
        ends: PortEnds = {}
        make_port = lru_cache(None)(lambda digits, number: PortId(f"0x{digits}", int(number)))
        for digits, rows in self.rows.items():
            for number, far, far_number, rate in rows:
                here = make_port(digits, number)
                if here in ends:
                    problems.append(f"{format_port(here)} is listed twice")
                if self.tells_rates and not parse_rate(rate):
                    problems.append(f"{format_port(here)}: no rate in {rate!r}")
                ends[here] = (make_port(far, far_number), rate if parse_rate(rate) else "")
        return ends


def read_system(text: str) -> str:
    """Return the system image GUID that a text such as `0xb1` holds, "" for one that holds none, or zero."""
    digits = text.strip().removeprefix("0x")
    return normalize_guid(digits) if re.fullmatch("0*[1-9a-fA-F][0-9a-fA-F]{0,15}", digits) else ""
