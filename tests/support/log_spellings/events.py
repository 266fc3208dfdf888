"""The events that every spelling tells, and the answer that each of them must give."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

BOOT = datetime(2026, 11, 21, 17, 0, tzinfo=UTC)
WRITTEN = datetime(2026, 11, 22, tzinfo=UTC)
HOST = "n1"
BOOT_ID = "4f2c" * 8
Clock = Literal["zone", "plain", "boot", "none"]
"""How a spelling tells the time: with a zone, without one, since the boot, not."""


class Line(NamedTuple):
    """One message of the kernel: seconds since the boot, the message, its level."""

    uptime: float
    text: str
    level: int = 6

    @property
    def at(self) -> datetime:
        return BOOT + timedelta(seconds=self.uptime)


LINES = (
    Line(1000.0, "usb 1-1: new high-speed USB device number 3 using xhci_hcd"),
    Line(1001.5, "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 3),
    Line(1031.25, 'audit: type=1400 apparmor="DENIED" operation="open" name="/a:b c;d [e] (f)"'),
    Line(1200.0, "pcieport 0000:15:01.0: AER: Uncorrectable (Fatal) error message received from 0000:16:00.0", 3),
    Line(1300.0, "NVRM: Xid (PCI:0000:3b:00): 48, pid=91, name=a b, DBE (double bit error) on FBHUB", 4),
    Line(1301.0, "NVRM: Xid (PCI:0000:3b:00): 48, pid=91, name=a b, DBE (double bit error) on FBHUB", 4),
    Line(1400.0, "NVRM: Xid (PCI:0000:3b:00): 48, pid=92, name=a b, DBE (double bit error) on FBHUB", 4),
    Line(1500.0, "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Fatal, Link 30 egress non-posted PRIV error", 2),
    Line(1600.0, "docker0: port 3(veth1) entered forwarding state"),
)


@dataclass(frozen=True)
class Told:
    """What must be told of one fault: the seconds since the boot of its first and last line; count and lines."""

    subject: str
    first: float
    last: float
    count: int
    lines: int


TOLD = {
    "gpu.xid.79": Told("0000:1b:00", 1001.5, 1001.5, 1, 1),
    "pcie.fatal": Told("0000:16:00.0", 1200.0, 1200.0, 1, 1),
    "gpu.xid.48": Told("0000:3b:00", 1300.0, 1400.0, 2, 3),
    "nvswitch.sxid.12028": Told("0000:05:00.0", 1500.0, 1500.0, 1, 1),
}


def expected(clock: Clock, seconds: float = 0.0) -> dict[str, tuple[str, str, str, int, int]]:
    """Return by fault: subject, first and last time, count, lines. `seconds`: the resolution of the times."""
    answer = {}
    for name, told in TOLD.items():
        count = told.lines if clock == "none" else told.count
        first, last = (str(tell_time(clock, at, seconds) or "") for at in (told.first, told.last))
        answer[name] = (told.subject, first, last, count, told.lines)
    return answer


def tell_time(clock: Clock, uptime: float, resolution: float = 0.0) -> str | None:
    """Return a time as `assay faults` tells it."""
    at = BOOT + timedelta(seconds=uptime)
    if resolution:
        at -= timedelta(microseconds=at.microsecond)
    if clock == "zone":
        return at.isoformat()
    if clock == "plain":
        return at.replace(tzinfo=None).isoformat()
    return f"boot+{uptime:.6f}s" if clock == "boot" else None
