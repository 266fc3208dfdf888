"""Limits that never fire, that nobody reads, that are missing, or in another unit than their check; and trend rules.

The bounds come from what hardware can read at all and from the datasheets of known GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from math import inf
from typing import NamedTuple

from assay.declare.check import RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import suggest_name
from assay.declare.rules.fabric_designs import list_design_spec_pairs
from assay.declare.spec_values_read_by_checks import read_check_inputs
from assay.model.specs.fabric.cable import find_next_slower_gbps, rate_to_gbps
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.node.node_spec import MetricLimit, NodeSpec
from assay.model.specs.trend_rules import TrendRules
from assay.model.units import UNITS, convert_unit, describe_unit_fix

PCIE_WIDTHS = (1, 2, 4, 8, 16)
SHARE_NAME = re.compile(r"(?:^|_)(?:used|usable|free|spare|share|spread|utili[sz]ation)$")
"""Limits of shares of a whole, for which a value below 1 % is a fraction: 0.97 for 97 %."""
BASE_SPEC = "server"
"""The NodeSpec that has the limits of any node, as assay ships it."""
GPU_UNITS = {
    "gpu_memory": "MiB",
    "pcie_generation": "generation",
    "nvlink_links": "links",
    "gpu_power_limit": "W",
    "all_reduce_bus_bandwidth": "GB/s",  # NVLink, both directions: with NVLS, it may exceed one direction's bandwidth
    "gpu_burn_gflops": "Gflop/s",  # gpu-burn multiplies in FP32, without tensor cores
}


class NumberBound(NamedTuple):
    """The least and the greatest number that can be meant, and the reason, where the number does not say it."""

    low: float
    high: float
    unit: str
    because: str = ""


LIMIT_BOUNDS = {
    "pcie_width": NumberBound(1, 16, "lanes", "a PCI Express device has at most 16 lanes"),
    "gpu_memory": NumberBound(1, 2**20, "MiB", "no GPU has more than 1 TiB of memory"),
    "gpu_clock": NumberBound(100, 5000, "MHz", "no GPU runs above 5 GHz"),
    "gpu_memory_clock": NumberBound(100, 16_000, "MHz", "no memory of a GPU runs above 16 GHz"),
    "pcie_generation": NumberBound(1, 6, "generation", "PCI Express 6 is the newest generation in servers"),
    "nvlink_links": NumberBound(1, 18, "links", "no GPU has more than 18 NVLink links"),
    "gpu_temperature": NumberBound(30, 100, "°C", "a GPU shuts itself down before 100 °C, and idles at 30 °C or more"),
    "memory_temperature": NumberBound(30, 110, "°C", "HBM is shut down before 110 °C, and idles at 30 °C or more"),
    "gpu_power_limit": NumberBound(50, 3000, "W", "a server's GPU takes at least 50 W and at most 3 kW"),
    "inlet_temperature": NumberBound(10, 50, "°C", "ASHRAE's widest class (TC 9.9, A4) allows 5 to 45 °C"),
    "inlet_temperature_low": NumberBound(0, 40, "°C", "ASHRAE's widest class (TC 9.9, A4) allows 5 to 45 °C"),
    "inlet_spread": NumberBound(1, 40, "°C", "ASHRAE's widest class (TC 9.9, A4) allows 5 to 45 °C"),
    "remap_uncorrectable": NumberBound(0, 512, "rows", "a GPU has 512 spare rows"),
    "remap_correctable": NumberBound(0, 512, "rows", "a GPU has 512 spare rows"),
    "hca_rate": NumberBound(1, 2400, "Gb/s", "12xXDR is the fastest InfiniBand link"),
    # PortCounters, InfiniBand Architecture Specification vol. 1, 16.1.3.5: counters stop at their highest value.
    "link_downed": NumberBound(0, 254, "count", "the port's counter has 8 bits and stops at 255"),
    "link_error_recovery": NumberBound(0, 254, "count", "the port's counter has 8 bits and stops at 255"),
    "symbol_error": NumberBound(0, 65534, "count", "the port's counter has 16 bits and stops at 65535"),
    "nvme_read": NumberBound(1, 32_000, "MB/s", "four lanes of PCI Express 6 carry 32 GB/s"),
    "psu_input_low": NumberBound(36, 1000, "V", "supplies take 36 V DC or more, and 1 000 V or less"),
    "psu_input_high": NumberBound(36, 1000, "V", "supplies take 36 V DC or more, and 1 000 V or less"),
    "fan_speed": NumberBound(1, 40_000, "rpm", "a turning fan makes 1 to 40 000 turns per minute"),
}
"""By name of the limit."""
UNIT_BOUNDS = {
    "%": NumberBound(0, 100, "%", "a share is between 0 and 100 %"),
    "°C": NumberBound(-273.15, float("inf"), "°C", "nothing is colder"),
}
"""By unit, for all other limits."""


class GpuMaximum(NamedTuple):
    """The maxima of a GPU model. None if the source does not give one."""

    pcie_generation: float
    nvlink_links: float | None
    gpu_power_limit: float
    all_reduce_bus_bandwidth: float | None
    gpu_burn_gflops: float
    gpu_memory: float
    source: str


GPU_MAXIMA = {
    "NVIDIA A100-SXM": GpuMaximum(4, 12, 400, 600, 19_500, 81_920, "NVIDIA A100 datasheet, SXM"),
    "NVIDIA H100 PCIe": GpuMaximum(5, None, 350, None, 51_000, 81_920, "NVIDIA H100 datasheet, PCIe"),
    "NVIDIA H100 NVL": GpuMaximum(5, None, 400, None, 60_000, 98_304, "NVIDIA H100 datasheet, NVL"),
    "NVIDIA H100": GpuMaximum(5, 18, 700, 900, 67_000, 98_304, "NVIDIA H100 datasheet, SXM"),
    "NVIDIA H200 NVL": GpuMaximum(5, 18, 600, 900, 60_000, 147_456, "NVIDIA H200 datasheet, NVL"),
    "NVIDIA H200": GpuMaximum(5, 18, 700, 900, 67_000, 147_456, "NVIDIA H200 datasheet, SXM"),
    "NVIDIA B200": GpuMaximum(6, 18, 1000, 1800, 80_000, 196_608, "NVIDIA HGX B200 datasheet"),
    "NVIDIA GB200": GpuMaximum(6, 18, 1200, 1800, 80_000, 196_608, "NVIDIA GB200 NVL72 datasheet"),
    "NVIDIA GB300": GpuMaximum(6, 18, 1400, 1800, 80_000, 294_912, "NVIDIA GB300 NVL72 datasheet"),
    "AMD Instinct MI300X": GpuMaximum(5, None, 750, None, 163_400, 196_608, "AMD Instinct MI300X data sheet"),
}
"""By prefix of the model name; the first prefix that matches counts."""


def find_gpu_maximum(model: str) -> GpuMaximum | None:
    """Return the maxima of a GPU model, None for an unknown model."""
    return next((maximum for prefix, maximum in GPU_MAXIMA.items() if model.startswith(prefix)), None)


@rule("ASY0050", "a limit that can never fire")
def impossible_limit(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A check with this limit can never fail, or can never pass."""
    for spec in draft.specs_of_model(NodeSpec).values():
        for name, limit in spec.limits.items():
            bound = (
                LIMIT_BOUNDS.get(name)
                or UNIT_BOUNDS.get(limit.unit)
                or NumberBound(0, inf, limit.unit, "nothing counts below 0")
            )
            value = convert_unit(limit.value, limit.unit, bound.unit)
            if value is not None and not bound.low <= value <= bound.high:
                message = f"{name} is {limit.value:g} {limit.unit}, but {bound.because}"
                allowed = "or more" if bound.high == inf else f"to {bound.high:g} {bound.unit}"
                place = draft.find_position(f"NodeSpec/{spec.name}", "limits", name)
                yield RuleFinding(place, message, f"use {bound.low:g} {allowed}")
            elif (unmeant := _find_unmeant_value(name, limit)) is not None:
                yield RuleFinding(draft.find_position(f"NodeSpec/{spec.name}", "limits", name, "value"), *unmeant)


def _find_unmeant_value(name: str, limit: MetricLimit) -> tuple[str, str] | None:
    """Return message and fix for a share that is written as a fraction, and for a width that no link has."""
    if limit.unit == "%" and 0 < limit.value < 1 and SHARE_NAME.search(name):
        fix = f"write a percentage: {limit.value * 100:g} for this fraction"
        return f"{name} is {limit.value:g} %: less than one part of a hundred", fix
    if name.endswith("pcie_width") and limit.value not in PCIE_WIDTHS:
        return f"{name} is {limit.value:g} lanes, which no PCI Express device has", "use 1, 2, 4, 8 or 16"
    return None


@rule("ASY0051", "a lower limit above its upper one")
def crossed_limits(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """No reading lies between them, so every node would fail."""
    for spec in draft.specs_of_model(NodeSpec).values():
        for name, low in spec.limits.items():
            stem = name.removesuffix("_low")
            high = spec.limits.get(f"{stem}_high") or spec.limits.get(stem)
            if stem != name and high is not None and low.value >= high.value:
                message = f"{name} ({low.value:g}) is not below the upper limit ({high.value:g})"
                place = draft.find_position(f"NodeSpec/{spec.name}", "limits", name)
                yield RuleFinding(place, message, "swap or correct the two")


@rule("ASY0052", "a limit that no check reads", severity="warning")
def unread_limit(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The limit looks active, but nothing compares a reading with it."""
    # A fleet without suites has no finding.
    suites = draft.suites
    used = {limit.name for limit in suites.limits}
    for spec in draft.specs_of_model(NodeSpec).values() if suites.tests and not suites.broken else ():
        for name in spec.limits:
            if name not in used:
                place = draft.find_position(f"NodeSpec/{spec.name}", "limits", name)
                yield RuleFinding(place, f"no check reads the limit {name}", "write the check, or remove it")


@rule("ASY0053", "a check reads a limit that a spec lacks")
def missing_limit(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """On nodes with this spec, the check always ends as an error."""
    # Where a check is not due, it reads no limit. What a helper function reads, any check of its module may read.
    specs, checks = draft.specs_of_model(NodeSpec), [check for _, check in draft.declared_checks]
    not_due = {
        name: {check.id for check in checks if all(map(check.find_lacking, kinds))}
        for name, kinds in draft.parts_by_spec.items()
    }
    for limit in draft.suites.limits:
        of_file = [source for source in draft.suites.checks if source.file == limit.file]
        reading = [source for source in of_file if limit.line in source.lines] or of_file
        readers = [source.name for source in reading] or [""]
        without = [spec for spec in specs.values() if limit.name not in spec.limits]
        lacking = [spec for spec in without if not not_due[spec.name].issuperset(readers)]
        if lacking:
            place = (limit.file, limit.line, limit.column)
            message = f"{', '.join(spec.name for spec in lacking)} has no limit {limit.name}"
            is_bare = BASE_SPEC in specs and limit.name in specs[BASE_SPEC].limits and not lacking[0].extends
            fix = f"write `extends: {BASE_SPEC}`" if is_bare else suggest_name(limit.name, lacking[0].limits)
            yield RuleFinding(place, message, fix)


@rule("ASY0055", "a limit that contradicts the hardware")
def contradicted_limit(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """With this limit, every node fails, or a degraded node passes."""
    for spec in draft.specs_of_model(NodeSpec).values():
        for name, most, unit, reason in _upper_bounds(spec):
            limit = spec.limits.get(name)
            value = convert_unit(limit.value, limit.unit, unit) if limit else None
            if limit and value is not None and value > most:
                message = f"{name} is {limit.value:g} {limit.unit}, but {reason}"
                place = draft.find_position(f"NodeSpec/{spec.name}", "limits", name)
                yield RuleFinding(place, message, f"use at most {most:g} {unit}, or correct the hardware")
    for design, spec in list_design_spec_pairs(draft):
        rate = spec.limits.get("hca_rate")
        value = convert_unit(rate.value, rate.unit, "Gb/s") if rate else None
        full = rate_to_gbps(design.rate)
        slower = find_next_slower_gbps(design.rate)
        if value is not None and value <= slower:
            runs = f"{design.name} runs at {full:g} ({design.rate})"
            message = f"hca_rate is {value:g} Gb/s, but {runs}: with this limit, a link at {slower:g} passes"
            place = draft.find_position(f"NodeSpec/{spec.name}", "limits", "hca_rate")
            yield RuleFinding(place, message, f"use {full:g} Gb/s")


@rule("ASY0120", "a check reads a limit that a fabric design lacks", severity="warning")
def missing_fabric_limit(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """In this fabric, the check always ends as an error."""
    # No suite judges NVLink domains. Where a check is not due, it reads no limit.
    inputs, checks = read_check_inputs(draft.tree), [check for _, check in draft.declared_checks]
    for design in draft.specs_of_model(FabricDesign).values():
        other_kind = {"infiniband", "roce"} - {design.kind_of_links}
        not_due = {check.id for check in checks if not other_kind.isdisjoint(check.needs)}
        read = {name for check, each in inputs.items() if check not in not_due for name in each.fabric_limits}
        lacking = sorted(read - design.limits.keys())
        if lacking and not design.nvlink:
            message = f"{design.name} has no limit {', '.join(lacking)}, which checks of suites/ read"
            place = draft.find_position(f"FabricDesign/{design.name}", "limits")
            yield RuleFinding(place, message, "set it under `limits`, with value, unit and source")


@rule("ASY0121", "a fabric's limit in another unit than its check")
def other_unit_in_a_fabric(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """120 errors per hour are 2 per minute, so the check is wrong by a factor of 60."""
    calls = {name: call for call in draft.suites.measures for name in call.fabric_limits if call.unit in UNITS}
    for design in draft.specs_of_model(FabricDesign).values():
        for name, limit in design.limits.items():
            call = calls.get(name)
            if call and limit.unit != call.unit:
                message = f"{name} is in {limit.unit}, but {call.file}:{call.line} measures in {call.unit}"
                value = convert_unit(limit.value, limit.unit, call.unit)
                fix = f"write {{value: {value:.10g}, unit: {call.unit}}}" if value is not None else f"use {call.unit}"
                yield RuleFinding(draft.find_position(f"FabricDesign/{design.name}", "limits", name), message, fix)


def _upper_bounds(spec: NodeSpec) -> Iterator[tuple[str, float, str, str]]:
    """Yield name, maximum, unit and reason for each limit that the spec's hardware bounds."""
    if spec.nvme.count:
        yield "nvme_size", spec.nvme.size_gb, "GB", f"its drives hold {spec.nvme.size_gb} GB (nvme.size_gb)"
    gpu = find_gpu_maximum(spec.gpus.model)
    for name, unit in GPU_UNITS.items() if gpu else ():
        most = getattr(gpu, name)
        if gpu and most is not None:
            yield name, most, unit, f"{spec.gpus.model} reaches at most {most:g} {unit} ({gpu.source})"


@rule("ASY0054", "a limit in another unit than its check")
def mismatched_unit(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """400 Gb/s is 50 GB/s, so the check is wrong by a factor of eight."""
    reported = set()
    for call in (call for call in draft.suites.measures if call.unit in UNITS):
        for spec in draft.specs_of_model(NodeSpec).values():
            for name in call.limits:
                limit = spec.limits.get(name)
                if limit is not None and limit.unit != call.unit and (spec.name, name) not in reported:
                    reported.add((spec.name, name))
                    message = f"{name} is in {limit.unit}, but {call.file}:{call.line} measures in {call.unit}"
                    place = draft.find_position(f"NodeSpec/{spec.name}", "limits", name)
                    yield RuleFinding(place, message, _unit_fix(limit, call.unit))


@rule("ASY0057", "a check that names the wrong unit")
def unknown_or_contradicting_unit(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """With a wrong unit, every reader misunderstands the number."""
    for call in draft.suites.measures:
        place = (call.file, call.line, call.column)
        unit = call.stated_unit
        if unit and unit not in UNITS:
            yield RuleFinding(
                place, f"{call.name} is in {unit}, but assay does not know this unit", describe_unit_fix(unit)
            )
        elif unit and call.name_unit and unit != call.name_unit:
            message = f"{call.name} is recorded in {unit}, but its reading's name says {call.name_unit}"
            yield RuleFinding(place, message, f"leave out unit=, or convert the reading to {unit}")


def _unit_fix(limit: MetricLimit, unit: str) -> str:
    """Return the fix: the same limit in the check's unit."""
    value = convert_unit(limit.value, limit.unit, unit)
    if value is None:
        dimensions = f"{limit.unit} is {UNITS[limit.unit].dimension} and {unit} is {UNITS[unit].dimension}"
        return f"{dimensions}: read another limit, or correct the unit"
    return f"write {{value: {value:.10g}, unit: {unit}}}, or measure in {limit.unit}"


@rule("ASY0370", "a trend rule for an unknown fault class", needs=(FaultCatalog,))
def unknown_trend_fault(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A fault without a class gets the treatment of unknown faults, and a warning is no fault that is unknown."""
    known = _list_classes(draft)
    for document in draft.specs_of_model(TrendRules).values():
        for name, trend_rule in document.rules.items():
            if trend_rule.fault not in known:
                place = draft.find_position(f"TrendRules/{document.name}", "rules", name, "fault")
                message = f"{name}: no FaultCatalog holds the class {trend_rule.fault}"
                yield RuleFinding(place, message, suggest_name(trend_rule.fault, known))


@rule("ASY0371", "a trend rule that no fault proves right", needs=(FaultCatalog,))
def unprovable_trend_rule(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Each of its warnings ends as wrong, and the rule loses its stage."""
    known = _list_classes(draft)
    for document in draft.specs_of_model(TrendRules).values():
        for name, trend_rule in document.rules.items():
            for number, pattern in enumerate(trend_rule.failures):
                if not any(fnmatchcase(fault, pattern) for fault in known):
                    place = draft.find_position(f"TrendRules/{document.name}", "rules", name, "failures", number)
                    message = f"{name}: no fault is named like {pattern}"
                    yield RuleFinding(place, message, suggest_name(pattern, known))


def _list_classes(draft: RepositoryDraft) -> set[str]:
    """Return the name of every fault, by its class and by its XIDs."""
    catalogs = draft.specs_of_model(FaultCatalog).values()
    classes = {name: fault for catalog in catalogs for name, fault in catalog.classes.items()}
    return {*classes, *(number for fault in classes.values() for number in fault.list_xid_names())}
