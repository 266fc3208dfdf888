"""Loads by a command of the site, from its node spec: HPL, such as in NVIDIA's image, and training.

What stands where in the lines of training is declared: by a JSON path or by a pattern.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from collections.abc import Mapping
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.node.load_tools.load_delivery import LoadCommand, find_container
from assay.node.load_tools.tool_call import LoadOrder, ToolOutput, call_tool, read_speed
from assay.node.probe.node_access import NodeRoot

HPL_S = 3600
RESULT_ROW = re.compile(r"^W[RC]\S+\s+\d+\s+\d+\s+\d+\s+\d+\s+\S+\s+(\S+)", re.MULTILINE)
RESIDUAL = re.compile(r"^\|\|Ax-b\|\|.*\.\.\.\s*(PASSED|FAILED)\s*$", re.MULTILINE)
MAX_LINE = 4096
"""Characters of a line that are looked at, so that no pattern takes long."""
SITE_TRAINING_S = 4 * 3600
NUMBERS = ("step", "loss", "tokens_per_s", "step_ms")
FIELDS = (*NUMBERS, "digest")
USUAL = {"tokens_per_s": "tokens per second", "step_ms": "milliseconds"}
"""Of these, the median of all steps is read."""
DIGEST = re.compile(r"[0-9a-f]{8,64}")
WHAT_COMPUTES = ("command", "container", *FIELDS)
"""The parts of the declaration that decide about digests and losses."""


def run_hpl(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Run the site's command. HPL's size decides how long it takes, up to an hour."""
    del root
    if not order.site.hpl:
        return absent("the node's spec declares no command for HPL (load.hpl)")
    return call_tool(order.site.hpl, LoadOrder(HPL_S, order.env), parse_hpl)


def parse_hpl(output: ToolOutput) -> ReadingTree:
    """Parse the table: `gflops` of the slowest run, and whether all residuals are `right`."""
    rates = RESULT_ROW.findall(output.stdout)
    residuals = RESIDUAL.findall(output.stdout)
    if not rates or len(residuals) < len(rates):
        return output.fail(
            f"HPL gave {len(rates)} results, of which {len(residuals)} are verified; exit code {output.exit_code}"
        )
    speeds = [read_speed(rate) for rate in rates]
    slowest = min(speeds, key=lambda leaf: leaf.get("value", 0.0))
    right = "FAILED" not in residuals
    if output.exit_code and right:
        return output.fail(f"HPL ended with exit code {output.exit_code}")
    return {"gflops": slowest, "right": value(right)}


def run_site_training(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Run the site's command, in its container if it has one, until it ends, or until its deadline."""
    declared = order.site.training
    if not declared:
        return absent("the inventory declares no training (load_tools.training)")
    words = tuple(map(str, declared["command"]))
    start = find_container(root, declared["container"], words) if "container" in declared else LoadCommand(words)
    if not isinstance(start, LoadCommand):
        return start
    allowed = LoadOrder(int(declared["deadline_s"]), {**order.env, **start.environment})
    return call_tool(
        start.command,
        allowed,
        lambda output: parse_output(output, declared),
        grace_s=0,
        salvage=lambda text, reason: parse_steps(text, reason, declared),
        keeps_input=start.keeps_input,
    )


def parse_output(output: ToolOutput, declared: Mapping[str, Any]) -> ReadingTree:
    """Parse a run that ended by itself. An exit code other than 0 is no end, whatever was printed before."""
    reason = f"{output.tool} ended with exit code {output.exit_code}" if output.exit_code else ""
    return parse_steps(output.text, reason, declared)


def parse_steps(text: str, reason: str, declared: Mapping[str, Any]) -> ReadingTree:
    """Parse lines as declared. `reason`: why the run was no whole one, "" if it was."""
    lines = (_read_line(line[:MAX_LINE], declared) for line in text.splitlines())
    steps = [line for line in lines if math.isfinite(line.get("step", math.nan))]
    least = int(declared.get("least_steps", 1))
    ended = failed(f"{len(steps)} steps, then: {reason}") if reason else value("done")
    if not reason and len(steps) < least:
        ended = failed(f"{len(steps)} steps were found in the output, and {least} are needed")
    program = json.dumps({name: declared[name] for name in WHAT_COMPUTES if name in declared}, sort_keys=True)
    return {
        "program": value(hashlib.sha256(program.encode()).hexdigest()),
        "ended": ended,
        "steps": value(len(steps)),
        **_read_losses(steps),
        **{name: _find_median(name, steps, declared) for name in USUAL},
        "digests": _read_digests(steps) if "digest" in declared else _not_declared("digest"),
    }


def _find_median(name: str, steps: list[dict[str, Any]], declared: Mapping[str, Any]) -> ReadingTree:
    if name not in declared:
        return _not_declared(name)
    seen = [step[name] for step in steps if math.isfinite(step.get(name, math.nan))]
    return value(statistics.median(seen)) if seen else failed(f"no step tells its {USUAL[name]}")


def _not_declared(name: str) -> ReadingTree:
    return unsupported(f"load_tools.training declares no {name}")


def _read_line(line: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a line has. A number that cannot be read as one is NaN: it was told, and it is none."""
    document = _parse_document(line)
    fields: dict[str, Any] = {}
    for name in FIELDS:
        if name not in declared:
            continue
        content = _find(line, document, declared[name])
        if content is not None:
            fields[name] = _parse_number(content) if name in NUMBERS else str(content)
    return fields


def _parse_document(line: str) -> Any:
    start = line.find("{")
    try:
        return json.loads(line[start:]) if start >= 0 else None
    except ValueError:
        return None


def _find(line: str, document: Any, where: Mapping[str, str]) -> Any:
    if "pattern" in where:
        match = re.search(where["pattern"], line)
        return match[1] if match else None
    for name in where["json"].split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def _parse_number(content: Any) -> float:
    try:
        return float(str(content).replace(",", ""))
    except ValueError:
        return math.nan


def _read_losses(steps: list[dict[str, Any]]) -> ReadingTree:
    losses = [(step["step"], step["loss"]) for step in steps if "loss" in step]
    wrong = [number for number, loss in losses if not math.isfinite(loss)]
    last = value(losses[-1][1]) if losses else failed("no step tells its loss")
    return {
        "loss": failed(f"the loss of step {wrong[0]:g} is no number") if wrong else last,
        "losses": value({f"{number:.0f}": loss for number, loss in losses if math.isfinite(loss)}),
        "wrong_losses": value(len(wrong)),
    }


def _read_digests(steps: list[dict[str, Any]]) -> ReadingTree:
    digests: dict[str, str] = {}
    for step in steps:
        if "digest" not in step:
            continue
        name = f"{step['step']:.0f}"
        digest = step["digest"].lower()
        if not DIGEST.fullmatch(digest):
            return failed(f"the digest of step {name} is not 8 to 64 hexadecimal digits: {digest[:80]!r}")
        if digests.setdefault(name, digest) != digest:
            return failed(f"step {name} tells two digests: {digests[name]} and {digest}")
    return value(digests) if digests else failed("no step tells its digest")
