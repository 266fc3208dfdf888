"""Finds the faults in a log file: a kernel log, or a BMC's event log."""

from __future__ import annotations

from typing import Any

from assay.lifecycle.faults.log_file_faults import LogFaultCollector
from assay.lifecycle.faults.sightings import find_nvlink_code, match_sel_event
from assay.model.specs.fault_catalog import FaultCatalog
from assay.observe.logs.log_reader import LogReader, open_log


def classify_log(file: str, catalog: FaultCatalog) -> dict[str, Any]:
    """Return `faults`, the number of `lines`, and how many were `unread`. `file` "-" is standard input.

    Raises AssayError if the file cannot be read.
    """
    with open_log(file) as (source, written):
        log = LogReader(source.read, catalog.kernel_log_matcher, written, "standard input" if file == "-" else file)
        collector = LogFaultCollector(catalog)
        collect_log_faults(log, collector, catalog)
    return {"faults": collector.faults(), "lines": log.tally.lines, "unread": log.tally.unreadable}


def collect_log_faults(log: LogReader, collector: LogFaultCollector, catalog: FaultCatalog) -> None:
    """Add every fault in the messages of a log to the collector."""
    for message in log.messages():
        if log.is_bmc_log:
            if name := match_sel_event(catalog, message.message_id, message.text):
                collector.add(name, message.part, message.at, message.stamp, message.text)
            continue
        for match in catalog.kernel_log_matcher.find_faults(message.text):
            code = find_nvlink_code(catalog, match, message.text)
            part = match.part or match.pci
            collector.add(match.name, part, message.at, message.stamp, message.text, code, message.uptime_s)
