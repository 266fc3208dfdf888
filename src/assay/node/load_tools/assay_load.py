"""`assay-load`, as its pool declares it: a digest for each unit and device. Units before a kill count as well.

`assay-load train` takes steps of a small model on all devices, each with its loss, digest and speed for each device.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from assay.model.reading import ReadingTree, failed, value
from assay.node.load_tools.load_delivery import TOOL, LoadCommand, explain_complaint, find_load_tool
from assay.node.load_tools.tool_call import TOOL_GRACE_S, LoadOrder, ToolOutput, call_tool, quote_ending
from assay.node.probe.node_access import NodeRoot

RUN_FACTS = ("engine", "backend", "program", "driver", "runtime", "flags", "devices", "without")
Lines = list[dict[str, Any]]
TOGETHER = ("collective.", "copy.peer")
"""Tests in which the devices wait for each other."""


def run_battery(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Run the battery for about the order's seconds. It goes on after the order's unit.

    Each run has the GPUs in another order, so that a wrong result that comes again follows its GPU.
    """
    words = ["battery", "--seconds", str(order.seconds), "--order", "shuffled"]
    return run_assay_load(
        root, [*words, *(["--after", order.after_unit] if order.after_unit else [])], order, _read_units
    )


def read_cut_battery(text: str, reason: str) -> ReadingTree:
    """Return the readings of a battery that was cut short for a `reason`, from what it printed until then."""
    return parse_load(text, reason, _read_units)


def _read_units(lines: Lines) -> ReadingTree:
    last = {"last_unit": value(f"{lines[-1]['seed']}:{lines[-1]['test']}")} if lines else {}
    return {"units": value(collect_units(lines)), "busy_ms": sum_busy_ms(lines), **last}


def run_assay_load(
    root: NodeRoot,
    words: Sequence[str],
    order: LoadOrder,
    read: Callable[[Lines], ReadingTree],
    grace_s: float = TOOL_GRACE_S,
) -> ReadingTree:
    """Run the tool; return the run's facts, how it ended, and what `read` makes of its units.

    Where the node lacks something for the tool, return the leaf that says so.
    """
    start = find_load_tool(root)
    if not isinstance(start, LoadCommand):
        return start

    def parse(output: ToolOutput) -> ReadingTree:
        advice = explain_complaint(output.stderr) if output.exit_code else ""
        ended = f"{TOOL} ended with exit code {output.exit_code}{quote_ending(output.stderr)}"
        return parse_load(output.stdout, f"{ended}: {advice}" if advice else ended, read, output.exit_code)

    return call_tool(
        [*start.command, *words],
        replace(order, env={**order.env, **start.environment}),
        parse,
        grace_s=grace_s,
        salvage=lambda text, reason: parse_load(text, reason, read),
        keeps_input=start.keeps_input,
    )


def parse_load(text: str, reason: str, read: Callable[[Lines], ReadingTree], exit_code: int = 0) -> ReadingTree:
    """Parse what the tool printed. `reason`: how it ended, told where its own lines do not say so, or say too much."""
    lines = _parse_lines(text)
    runs = [line["run"] for line in lines if isinstance(line.get("run"), dict)]
    units = [line for line in lines if isinstance(line.get("digests"), list) and isinstance(line.get("test"), str)]
    if not runs:
        return failed(f"{reason}; it did not begin")
    facts = {name: value(runs[0][name]) for name in RUN_FACTS if name in runs[0]}
    return {**facts, "ended": _read_end(lines, len(units), reason, exit_code), **read(units)}


def _parse_lines(text: str) -> Lines:
    lines = []
    for line in text.splitlines():
        try:
            parsed = json.loads(line)
        except ValueError:  # a warning of a library, or half a line
            continue
        if isinstance(parsed, dict):
            lines.append(parsed)
    return lines


def _read_end(lines: Lines, units: int, reason: str, exit_code: int) -> ReadingTree:
    ends = [line for line in lines if "end" in line]
    if not ends:
        return failed(f"killed after {units} units; {reason}")
    if ends[-1]["end"] != "done" or exit_code:
        return failed(f"{ends[-1]['end']} after {units} units; {ends[-1].get('reason', reason)}")
    return value("done") if units else failed("no units were computed")


def collect_units(units: Lines) -> dict[str, dict[str, Any]]:
    """Return test → seed → the digest on which all devices agree, or the digests in order of devices."""
    collected: dict[str, dict[str, Any]] = {}
    for unit in units:
        digests = unit["digests"]
        agreed = digests and digests[0] is not None and all(digest == digests[0] for digest in digests)
        collected.setdefault(unit["test"], {})[str(unit["seed"])] = digests[0] if agreed else digests
    return collected


def sum_busy_ms(units: Lines) -> ReadingTree:
    """Return how long each device computed in all, in order of devices. Together they wait for each other: left out."""
    alone = [unit["device_ms"] for unit in units if not unit["test"].startswith(TOGETHER) and unit.get("device_ms")]
    if not alone:
        return failed("no unit says how long each device took")
    return value([round(sum(times), 3) for times in zip(*alone, strict=False)])


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
    loss_bits = []  # of float32, in hexadecimal; None for what is no number
    for step in steps:
        bits = [struct.pack(">f", loss).hex() if _is_finite(loss) else None for loss in step.get("loss", [])]
        loss_bits.append({**step, "loss": bits})
    return {
        "units": value(collect_units(steps)),
        "own": value(_collect(steps, "own")),
        "loss_bits": value(_collect(loss_bits, "loss")),
        "busy_ms": sum_busy_ms(steps),
        "steps": value(len(steps)),
        "loss": _read_losses(steps[-1]),
        "tokens_per_s": _read_speeds(steps),
    }


def _collect(steps: Lines, name: str) -> dict[str, dict[str, Any]]:
    """Return another part of the steps in the form of units."""
    return collect_units([{**step, "digests": step.get(name, [])} for step in steps])


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
