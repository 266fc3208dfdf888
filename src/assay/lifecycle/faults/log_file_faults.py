"""A log as a stream of messages, told as faults: counted, attributed, and each with the reason for what it asks.

Memory: one entry for each fault and place, however often it is told.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

from assay.lifecycle.faults.counting_and_correlation import FaultCorrelator, FaultCounter
from assay.model.specs.fault_catalog import FaultBlame, FaultCatalog, FaultClass, FaultSeverity
from assay.model.specs.nvlink_xid import NvlinkCode

FaultOwner = Literal["hardware", "application", "driver", "operator"]
NODE_SUBJECT = "node"
_PCI = re.compile(r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<rest>[0-9a-f]{2}:[0-9a-f]{2}(?:\.[1-7])?)(?:\.0)?")
_WORST = {severity: rank for rank, severity in enumerate(get_args(FaultSeverity))}


@dataclass(slots=True)
class LogFault:
    """One fault of one part. `lines`: every line of it; `first` and `last`: stamps, None in a log without times."""

    name: str
    subject: str
    counting: FaultCounter
    settle_s: float
    first: str | None
    last: str | None = None
    lines: int = 0
    settling: int = 0
    detail: str = ""
    code: NvlinkCode | None = None
    echoes: Counter[str] = field(default_factory=Counter)


class LogFaultCollector:
    """Messages in, faults out."""

    def __init__(self, catalog: FaultCatalog) -> None:
        self._catalog, self._echoes = catalog, FaultCorrelator(catalog)
        self._told: dict[tuple[str, str], LogFault] = {}

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
        """Take in one sighting. `part` "" is the node; without `at` nothing can be coalesced or attributed."""
        place = _normalise_pci(part)
        if at is not None:
            cause = self._echoes.find_primary(name, place, at)
            if cause:
                self._told[cause].echoes[name] += 1
                return
            self._echoes.record(name, place, at)
        told = self._told.get((name, place))
        if told is None:
            told = self._told[name, place] = _make_log_fault(
                name, part or NODE_SUBJECT, stamp, self._catalog.find_class(name)
            )
        settling = uptime_s is not None and uptime_s < told.settle_s
        told.counting.add(at, not settling and (code is None or code.needs_action))
        told.last, told.detail, told.code = stamp, detail, code
        told.lines += 1
        told.settling += settling

    def faults(self) -> list[dict[str, Any]]:
        """Return every fault as plain data, the worst first."""
        found = [log_fault_as_json(told, self._catalog) for told in self._told.values()]
        return sorted(found, key=_urgency_key)


@lru_cache(maxsize=1024)
def _normalise_pci(part: str) -> str:
    """Return one spelling for all that drivers have of a PCI place: with and without its domain, with its function."""
    place = part.lower().rstrip(":.")
    pci = _PCI.fullmatch(place)
    return f"{int(pci['domain'] or '0', 16):04x}:{pci['rest']}" if pci else place


def _make_log_fault(name: str, subject: str, stamp: str | None, rule: FaultClass | None) -> LogFault:
    return LogFault(name, subject, FaultCounter.for_class(rule), rule.settle_seconds if rule else 0.0, stamp)


def _urgency_key(fault: dict[str, Any]) -> tuple[bool, int, str, str]:
    return fault["action"] == "none", _WORST[fault["severity"]], fault["fault"], fault["subject"]


def find_fault_owner(blame: FaultBlame) -> FaultOwner:
    """Return whose fault it is in four words: what surrounds a node (cables, air, power) counts as hardware."""
    return "hardware" if blame == "environment" else blame


def log_fault_as_json(told: LogFault, catalog: FaultCatalog) -> dict[str, Any]:
    """Return a fault as plain data: what it is, whose, how bad, what it asks for, and why."""
    rule, treatment = catalog.find_class(told.name), catalog.find_treatment(told.name)
    reached = told.counting.is_threshold_reached
    return {
        "fault": told.name,
        "class": find_fault_owner(treatment.blame),
        "severity": treatment.severity if reached else "informational",
        "subject": told.subject,
        "count": told.counting.count,
        "first": told.first,
        "last": told.last,
        "action": treatment.remedy if reached else "none",
        "because": "; ".join(_list_reasons(told, rule)),
        "investigate": rule.investigate if rule else "",
        "lines": told.lines,
        "detail": told.detail,
    }


def _list_reasons(told: LogFault, rule: FaultClass | None) -> list[str]:
    if rule is None:
        return ["no fault catalogue holds it: noted, until somebody says what it means"]
    said = [rule.summary.rstrip("."), rule.source]
    if told.code:
        said.append(str(told.code))
    if told.settling:
        said.append(f"{told.settling} of them within {rule.settle_seconds:g} s after the boot, which belong to it")
    if not told.counting.is_threshold_reached:
        said.append(_describe_below_threshold(told, rule))
    said += [f"{name} ×{count} followed from it and is not counted" for name, count in sorted(told.echoes.items())]
    return said


def _describe_below_threshold(told: LogFault, rule: FaultClass) -> str:
    if rule.count == 1:
        return "so it is noted only"
    return f"{len(told.counting.recent)} of {rule.count} within {rule.window_minutes:g} min that would make it a fault"
