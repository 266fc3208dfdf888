"""Limits that can never fire, that nobody reads, or that are not there."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, rule
from assay.fleet.rules.names import nearest
from assay.model.nodespec import NodeSpec

HARDWARE = {
    "pcie_width": (1, 16, "PCI Express has at most 16 lanes a device"),
    "pcie_generation": (1, 6, "PCI Express 6 is the newest there is in servers"),
    "nvlink_links": (1, 18, "no GPU has more than 18 NVLink links"),
    "gpu_temperature": (30, 100, "a GPU shuts itself down before 100 °C, and no data centre runs it below 30 °C"),
    "inlet_temperature": (10, 50, "ASHRAE's widest class allows 5 to 45 °C"),
    "remap_uncorrectable": (0, 512, "a GPU has 512 spare rows"),
    "remap_correctable": (0, 512, "a GPU has 512 spare rows"),
}


@rule("ASY0050", "a limit that can never fire", why="A check held to it could not fail, or could not pass.")
def impossible_limit(draft: Draft) -> Iterator[Finding]:
    """Find limits outside what the hardware can read."""
    for spec in draft.of(NodeSpec).values():
        for name, limit in spec.limits.items():
            low, high, because = HARDWARE.get(name, (float("-inf"), float("inf"), ""))
            if limit.unit == "%":
                low, high, because = 0, 100, "a share is at most 100 %"
            if not low <= limit.value <= high:
                said = f"{name} is {limit.value:g} {limit.unit}, but {because}"
                yield Finding(draft.at(f"NodeSpec/{spec.name}", "limits", name), said, f"use {low:g} to {high:g}")


@rule("ASY0051", "a lower limit above its upper one", why="No reading lies between them, so every node would fail.")
def crossed_limits(draft: Draft) -> Iterator[Finding]:
    """Find pairs `X_low` and `X_high` (or `X`) that leave nothing between them."""
    for spec in draft.of(NodeSpec).values():
        for name, low in spec.limits.items():
            stem = name.removesuffix("_low")
            high = spec.limits.get(f"{stem}_high") or spec.limits.get(stem)
            if stem != name and high is not None and low.value >= high.value:
                said = f"{name} ({low.value:g}) is not below the upper limit ({high.value:g})"
                yield Finding(draft.at(f"NodeSpec/{spec.name}", "limits", name), said, "swap or correct the two")


@rule("ASY0052", "a limit that no check reads", why="It promises a bound that nothing holds.", severity="warning")
def unread_limit(draft: Draft) -> Iterator[Finding]:
    """Find limits that no suite uses. A fleet without suites is not told."""
    suites = draft.suites
    used = {limit.name for limit in suites.limits}
    for spec in draft.of(NodeSpec).values() if suites.tests and not suites.broken else ():
        for name in spec.limits:
            if name not in used:
                said = f"no check reads the limit {name}"
                yield Finding(draft.at(f"NodeSpec/{spec.name}", "limits", name), said, "write the check, or remove it")


@rule("ASY0053", "a check reads a limit that a spec lacks", why="On such nodes the check could only end in an error.")
def missing_limit(draft: Draft) -> Iterator[Finding]:
    """Find limits that a suite uses and some node spec does not have."""
    for limit in draft.suites.limits:
        lacking = [spec for spec in draft.of(NodeSpec).values() if limit.name not in spec.limits]
        if lacking:
            said = f"{', '.join(spec.name for spec in lacking)} has no limit {limit.name}"
            yield Finding((limit.file, limit.line, limit.column), said, nearest(limit.name, lacking[0].limits))
