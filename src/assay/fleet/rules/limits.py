"""Limits that can never fire, that nobody reads, or that are not there."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from assay.fleet.cabled import pairs
from assay.fleet.draft import Draft
from assay.fleet.hardware import BOUNDS, GPU_UNITS, OF_UNIT, Bound, gpu_of
from assay.fleet.rules.book import Finding, rule
from assay.fleet.rules.names import nearest
from assay.model.design import FabricDesign
from assay.model.nodespec import NodeSpec
from assay.model.speed import gbps, next_slower
from assay.model.units import UNITS, converted


@rule("ASY0050", "a limit that can never fire", why="A check held to it could not fail, or could not pass.")
def impossible_limit(draft: Draft) -> Iterator[Finding]:
    """Find limits outside what the hardware can read."""
    for spec in draft.of(NodeSpec).values():
        for name, limit in spec.limits.items():
            bound = BOUNDS.get(name) or OF_UNIT.get(limit.unit) or Bound(0, inf, limit.unit, "nothing counts below 0")
            value = converted(limit.value, limit.unit, bound.unit)
            if value is not None and not bound.low <= value <= bound.high:
                said = f"{name} is {limit.value:g} {limit.unit}, but {bound.because}"
                reach = (
                    f"{bound.low:g} or more" if bound.high == inf else f"{bound.low:g} to {bound.high:g} {bound.unit}"
                )
                yield Finding(draft.at(f"NodeSpec/{spec.name}", "limits", name), said, f"use {reach}")


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


@rule("ASY0055", "a limit that contradicts the hardware", why="Every node would fail, or a degraded one would pass.")
def contradicted_limit(draft: Draft) -> Iterator[Finding]:
    """Find limits that no part of the spec itself can reach, or that a link of half its fabric's rate would pass."""
    for spec in draft.of(NodeSpec).values():
        for name, most, unit, what in _at_most(spec):
            limit = spec.limits.get(name)
            value = converted(limit.value, limit.unit, unit) if limit else None
            if limit and value is not None and value > most:
                said = f"{name} is {limit.value:g} {limit.unit}, but {what}"
                place = draft.at(f"NodeSpec/{spec.name}", "limits", name)
                yield Finding(place, said, f"use at most {most:g} {unit}, or correct the hardware")
    for design, spec in pairs(draft):
        rate = spec.limits.get("hca_rate")
        value, slower = converted(rate.value, rate.unit, "Gb/s") if rate else None, next_slower(design.rate)
        if value is not None and value <= slower:
            full = gbps(design.rate)
            said = (
                f"hca_rate is {value:g} Gb/s, but {design.name} runs at {full:g} ({design.rate}): {slower:g} would pass"
            )
            yield Finding(draft.at(f"NodeSpec/{spec.name}", "limits", "hca_rate"), said, f"use {full:g} Gb/s")


@rule(
    "ASY0120",
    "a check reads a limit that a fabric design lacks",
    why="In that fabric the check could only end in an error.",
    severity="warning",
)
def missing_fabric_limit(draft: Draft) -> Iterator[Finding]:
    """Find limits that a suite uses and some fabric design does not have, once for each design."""
    for design in draft.of(FabricDesign).values():
        lacking = sorted({limit.name for limit in draft.suites.fabric_limits} - design.limits.keys())
        if lacking:
            said = f"{design.name} has no limit {', '.join(lacking)}, which checks of suites/ read"
            place = draft.at(f"FabricDesign/{design.name}", "limits")
            yield Finding(place, said, "set it under `limits`, with value, unit and source")


@rule(
    "ASY0121",
    "a fabric's limit in another unit than its check",
    why="120 errors an hour are 2 a minute: the check would be off by as much.",
)
def other_unit_in_a_fabric(draft: Draft) -> Iterator[Finding]:
    """Find limits of fabric designs whose unit is not the one in which a check measures, once each."""
    measured = {name: one for one in draft.suites.measures for name in one.fabric_limits if one.unit in UNITS}
    for design in draft.of(FabricDesign).values():
        for name, limit in design.limits.items():
            one = measured.get(name)
            if one and limit.unit != one.unit:
                said = f"{name} is in {limit.unit}, but {one.file}:{one.line} measures in {one.unit}"
                value = converted(limit.value, limit.unit, one.unit)
                fix = f"write {{value: {value:.10g}, unit: {one.unit}}}" if value is not None else f"use {one.unit}"
                yield Finding(draft.at(f"FabricDesign/{design.name}", "limits", name), said, fix)


def _at_most(spec: NodeSpec) -> Iterator[tuple[str, float, str, str]]:
    """Yield the limits that the spec's hardware bounds: name, bound, unit, and what bounds it."""
    yield "nvme_size", spec.nvme.size_gb, "GB", f"its drives hold {spec.nvme.size_gb} GB (nvme.size_gb)"
    gpu = gpu_of(spec.gpus.model)
    for name, unit in GPU_UNITS.items() if gpu else ():
        most = getattr(gpu, name)
        if gpu and most is not None:
            yield name, most, unit, f"{spec.gpus.model} does {most:g} {unit} at most ({gpu.source})"
