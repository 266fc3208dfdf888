"""`assay-load train`: steps of a small model on all devices, each with its loss, digest and speed for each device."""

from __future__ import annotations

import math
import struct
from typing import Any

from assay.model.reading import ReadingTree, failed, value
from assay.node.load_tools.device_battery import Lines, collect_units, parse_load, run_assay_load, sum_busy_ms
from assay.node.load_tools.tool_call import LoadOrder
from assay.node.probe.node_access import NodeRoot


def run_training(workload: str, root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Train for about the order's seconds, from the same state at every visit."""
    return run_assay_load(root, ["train", workload, "--seconds", str(order.seconds)], order, read_steps)


def read_cut_training(text: str, reason: str) -> ReadingTree:
    """Return the readings of training that was cut short for a `reason`, from what it printed until then."""
    return parse_load(text, reason, read_steps)


def read_steps(lines: Lines) -> ReadingTree:
    """Return the readings of steps; a unit is a test and SEED.STEP. Losses and speeds are in the order of devices."""
    steps = [{**line, "seed": f"{line['seed']}.{line['step']}"} for line in lines if "step" in line]
    if not steps:
        return {
            name: failed("no step was computed")
            for name in ("units", "own", "loss_bits", "steps", "loss", "tokens_per_s")
        }
    return {
        "units": value(collect_units(steps)),
        "own": value(_collect(steps, "own")),
        "loss_bits": value(
            _collect([{**step, "loss": _format_losses(step.get("loss", []))} for step in steps], "loss")
        ),
        "busy_ms": sum_busy_ms(steps),
        "steps": value(len(steps)),
        "loss": _read_losses(steps[-1]),
        "tokens_per_s": _read_speeds(steps),
    }


def _collect(steps: Lines, name: str) -> dict[str, dict[str, Any]]:
    """Return another part of the steps in the form of units."""
    return collect_units([{**step, "digests": step.get(name, [])} for step in steps])


def _format_losses(losses: list[Any]) -> list[str | None]:
    """Return the bits of float32 losses in hexadecimal, None for one that is no number."""
    return [struct.pack(">f", loss).hex() if _is_finite(loss) else None for loss in losses]


def _is_finite(loss: Any) -> bool:
    return isinstance(loss, (int, float)) and math.isfinite(loss)


def _read_losses(last: dict[str, Any]) -> ReadingTree:
    losses = last.get("loss")
    if not isinstance(losses, list) or not losses or not all(map(_is_finite, losses)):
        return failed(f"step {last['step']} has a loss that is no number: {losses!r}")
    return value(losses)


def _read_speeds(steps: Lines) -> ReadingTree:
    try:
        devices = range(len(steps[0]["device_ms"]))
        tokens = sum(step["tokens"] for step in steps)
        return value([round(1e3 * tokens / sum(step["device_ms"][device] for step in steps), 1) for device in devices])
    except (KeyError, IndexError, TypeError, ZeroDivisionError):
        return failed("the steps tell no tokens or times")
