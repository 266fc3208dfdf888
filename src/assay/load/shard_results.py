"""Takes one number from each device's part of a result, and waits for no device longer than the unit may take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from assay.load.engine import UnitResult

POLL_S = 0.0002


def collect_digests(result: Any, devices: Sequence[Any], begun: float, unit_s: float) -> UnitResult:
    """Return each device's digest and when it came; None for a device that gave none within `unit_s`.

    All devices are asked in turn until they are ready, so that a slow one does not make the next ones look slow.
    """
    parts = {shard.device: shard.data for shard in result.addressable_shards}
    came_ms = _wait_for_each([parts[device] for device in devices], begun, begun + unit_s)
    answers = [("gave nothing in time", None) if at is None else _take(parts[device])
               for device, at in zip(devices, came_ms, strict=True)]  # fmt: skip
    reasons = [f"device {device.id} {reason}" for device, (reason, _) in zip(devices, answers, strict=True) if reason]
    times = [1e3 * unit_s if at is None else at for at in came_ms]
    return UnitResult(max(times), [digest for _, digest in answers], times, "; ".join(reasons))


def _wait_for_each(parts: Sequence[Any], begun: float, until: float) -> list[float | None]:
    """Return after how many milliseconds each part was ready, None for one that was not ready in time."""
    came: list[float | None] = [None] * len(parts)
    waiting = set(range(len(parts)))
    while waiting and time.perf_counter() <= until:
        for place in sorted(waiting):
            if parts[place].is_ready():
                came[place] = 1e3 * (time.perf_counter() - begun)
        waiting -= {place for place, at in enumerate(came) if at is not None}
        if waiting:
            time.sleep(POLL_S)
    return came


def _take(part: Any) -> tuple[str, int | None]:
    """Return why a part that is ready is no number, "" if it is one; and the number."""
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
