"""Finds the faults in a log file: counts and correlates a stream of messages, and gives each fault its reasons.

Memory does not grow with the log: there is one entry for each fault and place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.lifecycle.faults.counting_and_correlation import FaultCorrelator, FaultCounter
from assay.model.pci_address import normalize_pci_address
from assay.model.specs.fault_catalog import SEVERITIES, FaultBlame, FaultCatalog, FaultClass
from assay.model.specs.kernel_log_and_xid_patterns import NvlinkCode

FaultOwner = Literal["hardware", "application", "driver", "operator"]
NODE_SUBJECT = "node"


@dataclass(slots=True)
class LogFault:
    """One fault of one part. `first` and `last` are time stamps as in the log, None if the log has none.

    `lines` counts all of its lines. `settling` counts those too soon after a boot. `secondary` counts, by class, the
    faults that follow from it.
    """

    name: str
    subject: str
    counter: FaultCounter
    settle_s: float
    first: str | None
    last: str | None = None
    lines: int = 0
    settling: int = 0
    detail: str = ""
    code: NvlinkCode | None = None
    secondary: Counter[str] = field(default_factory=Counter)


class LogFaultCollector:
    """Collects messages, and returns their faults."""

    def __init__(self, catalog: FaultCatalog) -> None:
        self._catalog, self._correlator = catalog, FaultCorrelator(catalog)
        self._faults: dict[tuple[str, str], LogFault] = {}

    def add(
        self,
        name: str,
        part: str,
        at: float | None,
        stamp: str | None,
        detail: str,
        code: NvlinkCode | None = None,
        uptime_s: float | None = None,
    ) -> None:
        """Add a sighting of the class `name`. `part` "" means the node. Without `at`, nothing is correlated."""
        place = normalize_pci_address(part) or part.lower().rstrip(":.")
        if at is not None:
            primary = self._correlator.find_primary(name, place, at)
            if primary:
                self._faults[primary].secondary[name] += 1
                return
            self._correlator.record(name, place, at)
        fault = self._faults.get((name, place))
        if fault is None:
            rule = self._catalog.find_class(name)
            counter, settle_s = FaultCounter.for_class(rule), rule.settle_seconds if rule else 0.0
            fault = self._faults[name, place] = LogFault(name, part or NODE_SUBJECT, counter, settle_s, stamp)
        settling = uptime_s is not None and uptime_s < fault.settle_s
        fault.counter.add(at, not settling and (code is None or code.needs_action))
        fault.last, fault.detail, fault.code = stamp, detail, code
        fault.lines += 1
        fault.settling += settling

    def faults(self) -> list[dict[str, Any]]:
        """Return every fault as plain data, the worst first."""
        faults = [log_fault_as_json(fault, self._catalog) for fault in self._faults.values()]
        return sorted(faults, key=_urgency_key)


def _urgency_key(fault: dict[str, Any]) -> tuple[bool, int, str, str]:
    return fault["action"] == "none", SEVERITIES.index(fault["severity"]), fault["fault"], fault["subject"]


def find_fault_owner(blame: FaultBlame) -> FaultOwner:
    """Return who owns a fault. The surroundings of a node (cables, air, power) count as hardware."""
    return "hardware" if blame == "environment" else blame


def log_fault_as_json(fault: LogFault, catalog: FaultCatalog) -> dict[str, Any]:
    """Return a fault as plain data: class, owner, severity, count, what it asks for, and why."""
    rule, treatment = catalog.find_class(fault.name), catalog.find_treatment(fault.name)
    reached = fault.counter.is_threshold_reached
    return {
        "fault": fault.name,
        "class": find_fault_owner(treatment.blame),
        "severity": treatment.severity if reached else "informational",
        "subject": fault.subject,
        "count": fault.counter.count,
        "first": fault.first,
        "last": fault.last,
        "action": treatment.remedy if reached else "none",
        "because": "; ".join(_list_reasons(fault, rule)),
        "investigate": rule.investigate if rule else "",
        "lines": fault.lines,
        "detail": fault.detail,
    }


def _list_reasons(fault: LogFault, rule: FaultClass | None) -> list[str]:
    if rule is None:
        return ["no fault catalogue holds it: noted, until somebody says what it means"]
    reasons = [rule.summary.rstrip("."), rule.source]
    if fault.code:
        reasons.append(str(fault.code))
    if fault.settling:
        reasons.append(f"{fault.settling} of them within {rule.settle_seconds:g} s after the boot, which belong to it")
    if not fault.counter.is_threshold_reached:
        reasons.append(_describe_below_threshold(fault, rule))
    reasons += [
        f"{name} ×{count} followed from it and is not counted" for name, count in sorted(fault.secondary.items())
    ]
    return reasons


def _describe_below_threshold(fault: LogFault, rule: FaultClass) -> str:
    if rule.count == 1:
        return "so it is noted only"
    return f"{len(fault.counter.recent)} of {rule.count} within {rule.window_minutes:g} min that would make it a fault"
