"""Words a drift fault for technicians: each wanted value with file and line, what was seen, and since when."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from assay.decide.drift.reason_reading import ReadDifference, name_of_check, read_differences
from assay.model.faults.fault_record import FaultRecord
from assay.model.outcome import RecordedOutcome
from assay.model.timestamps import format_minute


def describe_fault(fault: FaultRecord, drift: Collection[str], latest: Iterable[RecordedOutcome]) -> tuple[str, str]:
    """Return what a ticket about a fault expects, and what was seen; `drift` are the fault classes of drift.

    A fault covers all checks of its class on one subject. `latest` are the node's newest outcomes.
    """
    if fault.fault_class not in drift:
        return f"no {fault.fault_class}", fault.detail
    failing = sorted(
        (one.outcome.check, one.outcome.reason)
        for one in latest
        if (one.outcome.verdict, one.outcome.fault, one.outcome.subject) == ("fail", fault.fault_class, fault.subject)
    )
    found = [(check, one) for check, reason in failing for one in read_differences(check, reason)]
    if not found:
        return f"no {fault.fault_class}", _add_since(fault.detail, fault)
    wanted = dict.fromkeys(_format_wanted(check, one) for check, one in found)
    seen = dict.fromkeys(f"{one.what}: {one.seen}" if one.wanted else one.seen for _, one in found)
    return "\n".join(wanted), _add_since("\n".join(seen), fault)


def _format_wanted(check: str, one: ReadDifference) -> str:
    if not one.wanted:
        return name_of_check(check)
    where = f" ({one.where})" if one.where else ""
    return f"{one.wanted}{where}" if one.wanted == one.what else f"{one.what}: {one.wanted}{where}"


def _add_since(text: str, fault: FaultRecord) -> str:
    return f"{text}\nsince {format_minute(fault.first_seen)}"
