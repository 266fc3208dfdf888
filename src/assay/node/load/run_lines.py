"""The lines that a run prints: JSON, one a unit, each flushed, so that whatever kills the run leaves whole lines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from assay.node.load.digests import format_digest
from assay.node.load.engine import EngineFacts, UnitResult


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
