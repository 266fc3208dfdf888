"""What an agent delivers, as evidence: kernel lines and NVML events as a probe would have read them, and whole looks.

Times are the controller's: a node's clock may be wrong, but it tells how long ago something was when it was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Literal, NamedTuple

from assay.model.evidence import Evidence
from assay.model.reading import value

Kind = Literal["kernel", "nvml", "probe"]


class Delivered(NamedTuple):
    """One thing that an agent saw at `at` (seconds since 1970, its own clock).

    `body` of a line: boot, seq, t_s (seconds since that boot), text; of a probe: its tree.
    """

    seq: int
    kind: Kind
    at: float
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Clocks:
    """What the node's clock said when it sent, and ours when it came."""

    theirs: float
    ours: datetime

    def of(self, at: float) -> datetime:
        """Return one of the node's times by our clock; nothing was seen in the future."""
        return self.ours - timedelta(seconds=min(max(0.0, self.theirs - at), 10 * 366 * 86400.0))


def documents(node: str, delivered: Iterable[Delivered], clocks: Clocks) -> Iterator[Evidence]:
    """Yield the evidence that these things are, in their order; lines of one source and boot are one document."""
    for (whole, boot), some in groupby(delivered, key=lambda one: (one.kind == "probe", one.body.get("boot", ""))):
        things = list(some)
        if whole:
            yield from (Evidence(node, clocks.of(one.at), {"probe": one.body}) for one in things)
            continue
        for kind in ("kernel", "nvml"):
            if lines := [one for one in things if one.kind == kind]:
                yield _lines(node, str(boot), lines, clocks)


def _lines(node: str, boot: str, things: list[Delivered], clocks: Clocks) -> Evidence:
    """Return lines as a look at them: `uptime_s` is such that each line falls on the time at which it was seen."""
    last = things[-1]
    booted = clocks.of(last.at) - timedelta(seconds=last.body["t_s"])
    host = {"boot_id": value(boot), "uptime_s": value((clocks.ours - booted).total_seconds())}
    lines = [_line(one.body, one.kind) for one in things]
    return Evidence(node, clocks.ours, {"probe": {"host": host, "kernel_log": {"lines": value(lines)}}})


def _line(body: Mapping[str, Any], source: Kind) -> dict[str, Any]:
    return {"seq": body["seq"], "t_s": body["t_s"], "text": body["text"], "source": source}
