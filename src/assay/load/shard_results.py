"""Takes one number from each device's part of a result, and waits for no device longer than the unit may take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from assay.load.engine import UnitResult

POLL_S = 0.0002


def collect_digests(result: Any, devices: Sequence[Any], begun: float, unit_s: float) -> UnitResult:
    """Return each device's digest and when it came; None for a device that gave none within `unit_s`."""
    parts = {shard.device: shard.data for shard in result.addressable_shards}
    digests: list[int | None] = []
    times: list[float] = []
    reasons = []
    for device in devices:
        reason, digest = _take(parts[device], begun + unit_s)
        digests.append(digest)
        times.append(1e3 * (time.perf_counter() - begun))
        if reason:
            reasons.append(f"device {device.id} {reason}")
    return UnitResult(max(times), digests, times, "; ".join(reasons))


def _take(part: Any, until: float) -> tuple[str, int | None]:
    """Return why there is no number, "" if there is one; and the number."""
    while not part.is_ready():
        if time.perf_counter() > until:
            return "gave nothing in time", None
        time.sleep(POLL_S)
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
