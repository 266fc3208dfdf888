"""The lines that a run prints: JSON, one a unit, each flushed, so that whatever kills the run leaves whole lines.

A line takes one number from each device's part of a result, and waits for no device longer than the unit may take.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from assay.node.load.digests import format_digest
from assay.node.load.engine import EngineFacts, UnitResult

POLL_S = 0.0002


class RunLines:
    """Writes the lines of one run and counts its units."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self.units = 0

    def write_start(self, facts: EngineFacts, program: str, size: str, without: Mapping[str, str]) -> None:
        """Write what runs where, and the tests that are left out, each with its reason."""
        described = asdict(facts)
        devices = described.pop("devices")
        run = {**described, "program": program, "size": size, "devices": devices, "without": dict(without)}
        self._write({"run": run})

    def write_unit(self, test: str, seed: int, result: UnitResult) -> None:
        """Write a unit of the battery."""
        self.units += 1
        times = [round(ms, 3) for ms in result.device_ms]
        line = {"test": test, "seed": seed, "ms": round(result.ms, 3), "digests": _format(result.digests)}
        self._write({**line, "device_ms": times})

    def write_step(self, test: str, seed: int, step: int, tokens: int, result: UnitResult) -> None:
        """Write a step of training. `tokens`: of one device. A loss that is no number is null."""
        self.units += 1
        losses = [loss if loss is not None and math.isfinite(loss) else None for loss in result.losses]
        times = [round(ms, 3) for ms in result.device_ms]
        line = {"test": test, "seed": seed, "step": step, "ms": round(result.ms, 3), "digests": _format(result.digests)}
        self._write({**line, "own": _format(result.own), "loss": losses, "tokens": tokens, "device_ms": times})

    def write_end(self, end: str, reason: str = "") -> None:
        """Write how the run ended: `done` or `stopped`."""
        self._write({"end": end, "units": self.units, **({"reason": reason} if reason else {})})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._output.write(json.dumps(line) + "\n")
        self._output.flush()


def _format(digests: Sequence[int | None]) -> list[str | None]:
    return [None if digest is None else format_digest(digest) for digest in digests]


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
