"""`assay faults FILE`: the faults in a kernel log or in a BMC's event log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.options import OptionalFleetDir, OutputFormat
from assay.cli.surrounding_fleet import load_surrounding_catalog

if TYPE_CHECKING:
    from assay.lifecycle.faults.log_file_faults import LogFaultCollector
    from assay.model.specs.fault_catalog import FaultCatalog
    from assay.observe.logs.log_reader import LogReader

faults_app = typer.Typer(add_completion=False)


@faults_app.command()
def faults(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The log, plain or gzipped. - is standard input.", show_default=False),
    ],
    fleet: OptionalFleetDir = None,
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Find the faults in a kernel log or in a BMC's event log, by the fault catalogue.

    Kernel logs: dmesg, /dev/kmsg, journalctl -k, syslog. Event logs: ipmitool sel, Redfish. The format is detected.

    Exit codes: 0 no fault needs an action on the node; 1 some faults do; 2 the log cannot be read.
    """
    document = classify_log(file, load_surrounding_catalog(fleet))
    if format == "json":
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        typer.echo("\n".join(format_faults_text(document)))
    raise typer.Exit(1 if any(fault["action"] != "none" for fault in document["faults"]) else 0)


def format_faults_text(document: dict[str, Any]) -> list[str]:
    """Return the lines for the answer of `classify_log`."""
    lines = []
    for fault in document["faults"]:
        times = "once" if fault["count"] == 1 else f"{fault['count']} times"
        start = f", {fault['first']}" if fault["first"] else ""
        end = f" to {fault['last']}" if fault["last"] != fault["first"] else ""
        repeats = f" ({fault['lines']:,} lines)" if fault["lines"] != fault["count"] else ""
        action = "no action" if fault["action"] == "none" else f"action {fault['action']}"
        lines.append(f"{fault['fault']} on {fault['subject']}: {action} ({fault['class']}, {fault['severity']})")
        lines.append(f"  {times}{start}{end}{repeats}")
        lines.append(f"  {fault['because']}")
        if fault["investigate"]:
            lines.append(f"  look at: {fault['investigate']}")
    acting = sum(fault["action"] != "none" for fault in document["faults"])
    unread = f", {document['unread']:,} of them unreadable" if document["unread"] else ""
    total = f"faults: {len(document['faults'])}, with an action: {acting}" if document["faults"] else "no fault"
    return [*lines, f"lines: {document['lines']:,}{unread}; {total}"]


def classify_log(file: str, catalog: FaultCatalog) -> dict[str, Any]:
    """Return `faults`, the number of `lines`, and how many were `unread`. `file` "-" is standard input.

    Raises AssayError if the file cannot be read.
    """
    from assay.lifecycle.faults.log_file_faults import LogFaultCollector
    from assay.observe.logs.log_reader import LogReader, open_log

    with open_log(file) as (source, written):
        log = LogReader(source.read, catalog.kernel_log_matcher, written, "standard input" if file == "-" else file)
        collector = LogFaultCollector(catalog)
        collect_log_faults(log, collector, catalog)
    return {"faults": collector.faults(), "lines": log.tally.lines, "unread": log.tally.unreadable}


def collect_log_faults(log: LogReader, collector: LogFaultCollector, catalog: FaultCatalog) -> None:
    """Add every fault in the messages of a log to the collector."""
    from assay.lifecycle.faults.sightings import find_nvlink_code, match_sel_event

    for message in log.messages():
        if log.is_bmc_log:
            if name := match_sel_event(catalog, message.message_id, message.text):
                collector.add(name, message.part, message.at, message.stamp, message.text)
            continue
        for match in catalog.kernel_log_matcher.find_faults(message.text):
            code = find_nvlink_code(catalog, match, message.text)
            part = match.part or match.pci
            collector.add(match.name, part, message.at, message.stamp, message.text, code, message.uptime_s)
