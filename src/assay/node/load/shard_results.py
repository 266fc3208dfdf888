"""Takes one number from each device's part of a result, and waits for no device longer than the unit may take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from assay.node.load.engine import UnitResult

POLL_S = 0.0002


def collect_digests(result: Any, devices: Sequence[Any], begun: float, unit_s: float) -> UnitResult:
    """Return each device's digest and when it came; None for a device that gave none within `unit_s`."""
    parts = {shard.device: shard.data for shard in result.addressable_shards}
    times = _wait([parts[device] for device in devices], begun, unit_s)
    digests: list[int | None] = []
    reasons = []
    for device, ms in zip(devices, times, strict=True):
        reason, digest = _take(parts[device]) if ms is not None else ("gave nothing in time", None)
        digests.append(digest)
        if reason:
            reasons.append(f"device {device.id} {reason}")
    took = [1e3 * unit_s if ms is None else ms for ms in times]
    return UnitResult(max(took), digests, took, "; ".join(reasons))


def _wait(parts: Sequence[Any], begun: float, unit_s: float) -> list[float | None]:
    """Return after how many milliseconds each device was ready, None if it was not in time. All are asked in turn."""
    times: list[float | None] = [None] * len(parts)
    while True:
        now = time.perf_counter()
        for place, part in enumerate(parts):
            if times[place] is None and part.is_ready():
                times[place] = 1e3 * (now - begun)
        if None not in times or now > begun + unit_s:
            return times
        time.sleep(POLL_S)


def _take(part: Any) -> tuple[str, int | None]:
    """Return why there is no number, "" if there is one; and the number."""
    try:
        return "", int(part.item())
    except RuntimeError as error:
        return f"failed: {str(error).splitlines()[0]}", None


def collect_numbers(result: Any, devices: Sequence[Any]) -> list[float | None]:
    """Return each device's number of a result whose program has ended, None where it failed."""
    parts = {shard.device: shard.data for shard in result.addressable_shards}
    return [_read_number(parts[device]) for device in devices]


def _read_number(part: Any) -> float | None:
    try:
        return float(part.item()) if part.is_ready() else None
    except RuntimeError:
        return None
