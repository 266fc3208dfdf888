"""A recorded discovery of the lab's design, with what hands did since applied to it.

Stands in for ibsim where that is not installed. The recording was printed by the real ibnetdiscover; its lines
are kept as they are for every port whose link is as designed, other lines are left out or written in their form,
and devices that the discovery would no longer reach are left out whole.
"""

from __future__ import annotations

import re
from importlib import resources

from assay.fabric.discovery import FoundCable
from assay.fabric.ibnetdiscover import DEVICE, PORT, parse
from assay.lab.fabric import Wiring
from assay.lab.ibsim import PACKAGES
from assay.lab.netfile import Mates, centre, mates, port_line
from assay.model.errors import Trouble


def recording(design: str) -> str:
    """Return the recorded discovery of a design. Raises Trouble where there is none."""
    file = resources.files("assay.lab") / "recordings" / f"{design}.txt"
    if not file.is_file():
        raise Trouble(f"the lab has no recorded discovery of the fabric {design}", fix=f"install {PACKAGES}")
    return file.read_text()


def replay(now: Wiring, links: list[FoundCable]) -> str:
    """Return the discovery that the real tools would print. Raises Trouble for a recording of another cabling."""
    text = recording(now.design)
    recorded = {(frozenset((a, b)), rate) for a, b, rate in parse(text).cables}
    if recorded != {(frozenset((a, b)), rate) for a, b, rate in now.designed}:
        raise Trouble(
            f"the recorded discovery of the fabric {now.design} is of another cabling than the design's",
            fix=f"install {PACKAGES}; or record it again with them",
        )
    ends, designed = mates(links), mates(now.designed)
    reached = _reached(centre(now.devices, ends), ends)
    records = re.split(r"(?m)^(?=vendid=)", text)
    return records[0] + "".join(_record(record, now, ends, designed, reached) for record in records[1:])


def _reached(start: str, ends: Mates) -> set[str]:
    """Return the devices that can be reached over links."""
    neighbours: dict[str, set[str]] = {}
    for here, (there, _) in ends.items():
        neighbours.setdefault(here.guid, set()).add(there.guid)
    reached, front = {start}, [start]
    while front:
        new = neighbours.get(front.pop(), set()) - reached
        reached |= new
        front += new
    return reached


def _record(record: str, now: Wiring, ends: Mates, designed: Mates, reached: set[str]) -> str:
    """Return one device's record as it reads now, nothing for a device out of reach."""
    head, *_ = re.split(r"(?m)^(?=\[)", record, maxsplit=1)
    device = DEVICE.search(head)
    assert device is not None, "every record of our recordings names its device"
    guid = f"0x{device[3]}"
    if guid not in reached:
        return ""
    recorded = {int(found[1]): line for line in record.splitlines() if (found := PORT.match(line))}
    ports = sorted(port for port in ends if port.guid == guid)
    lines = [
        recorded[port.number] if ends[port] == designed.get(port) else port_line(now.devices, port, *ends[port])
        for port in ports
    ]
    return head.rstrip("\n") + "\n" + "".join(f"{line}\n" for line in lines) + "\n"
