"""`assay faults FILE`: the faults in a kernel log or in a BMC's event log."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import OptionalFleetDir, OutputFormat
from assay.cli.workspace import load_surrounding_catalog
from assay.model.errors import AssayError
from assay.model.facts import fact

if TYPE_CHECKING:
    from assay.decide.faults.log_file_faults import FaultInLog, LogFaultCollector
    from assay.model.specs.fault_catalog import FaultCatalog
    from assay.observe.logs.log_reader import LogReader


SHOWN_LENGTH = 200
FETCH_AGAIN = "fetch the file again: what is missing may name a fault"


@fact
class FaultsAnswer:
    """The faults in a log, by the fault catalogue."""

    faults: list[FaultInLog]
    """The faults, the worst first; if one asks for an action, the exit code is 1."""
    lines: int
    """How many lines the log has."""
    unread: int
    """How many of them could not be read."""
    uncounted: str
    """The beginning of the first line that cannot be counted: it names a fault, or is of another log; "" without one.

    The exit code is then 2, unless a fault asks for an action.
    """
    broken: str
    """Why a packed file could not be unpacked to its end, so that the rest was not judged; "" if it could.

    The exit code is then 2, unless a fault asks for an action.
    """


faults_app = typer.Typer(add_completion=False)


@faults_app.command()
def faults(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The log, plain or packed. - is standard input.", show_default=False),
    ],
    fleet: OptionalFleetDir = None,
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Find the faults in a kernel log or in a BMC's event log, by the fault catalogue.

    Kernel logs: dmesg, journalctl, syslog, and whatever wraps their lines (JSON, containers, several hosts).
    Event logs: ipmitool sel, ipmi-sel, racadm, iLO, Redfish. The format is detected.

    Exit codes: 0 no fault needs an action on the node; 1 some faults do; 2 the log is empty or cannot be read to its
    end, or a line in it names a fault that cannot be counted, or is of another log.
    """
    document = classify_log(file, load_surrounding_catalog(fleet))
    where = "standard input" if file == "-" else file
    if not document.lines and document.broken:
        raise AssayError(f"cannot be read: {document.broken}", where=where, fix=FETCH_AGAIN)
    if not document.lines:
        raise AssayError("is empty: there is nothing to judge", where=where, fix="look whether what wrote it failed")
    print_answer(document, format, format_faults_text(document))
    if any(fault.action != "none" for fault in document.faults):
        raise typer.Exit(1)
    if document.uncounted:
        raise AssayError(
            f"holds a line that I cannot count: {document.uncounted!r}",
            where=where,
            fix="read that line: it is cut off, another program than the kernel wrote it, or it is of another log: "
            "then give that log as a file of its own",
        )
    if document.broken:
        raise AssayError(f"was read in part only: {document.broken}", where=where, fix=FETCH_AGAIN)


def format_faults_text(document: FaultsAnswer) -> list[str]:
    """Return the lines for the answer of `classify_log`."""
    lines, many = [], len({fault.host for fault in document.faults}) > 1
    for fault in document.faults:
        times = "once" if fault.count == 1 else f"{fault.count} times"
        start = f", {fault.first}" if fault.first else ""
        end = f" to {fault.last}" if fault.last != fault.first else ""
        repeats = f" ({fault.lines:,} lines)" if fault.lines != fault.count else ""
        action = "no action" if fault.action == "none" else f"action {fault.action}"
        place = f"{fault.host or 'a host without a name'}, {fault.subject}" if many else fault.subject
        lines.append(f"{fault.fault} on {place}: {action} ({fault.class_}, {fault.severity})")
        lines.append(f"  {times}{start}{end}{repeats}")
        lines.append(f"  {fault.because}")
        if fault.investigate:
            lines.append(f"  look at: {fault.investigate}")
    acting = sum(fault.action != "none" for fault in document.faults)
    unread = f", {document.unread:,} of them unreadable" if document.unread else ""
    none = "a line that cannot be counted" if document.uncounted else "no fault"
    total = f"faults: {len(document.faults)}, with an action: {acting}" if document.faults else none
    lines.append(f"lines: {document.lines:,}{unread}; {total}{' so far' if document.broken else ''}")
    return [*lines, f"read in part only: {document.broken}"] if document.broken else lines


def classify_log(file: str, catalog: FaultCatalog) -> FaultsAnswer:
    """Return `faults`, the number of `lines`, how many were `unread`, and the first that could not be counted.

    `file` "-" is standard input. `broken` says why the file could not be read to its end, "" if it could.

    Raises AssayError if the file cannot be read.
    """
    from assay.decide.faults.log_file_faults import LogFaultCollector
    from assay.observe.logs.log_reader import LogReader, open_log

    with open_log(file) as (source, written):
        log = LogReader(source.read, catalog.kernel_log_matcher, written, "standard input" if file == "-" else file)
        collector = LogFaultCollector(catalog)
        try:
            collect_log_faults(log, collector, catalog)
        except AssayError as error:
            if source.broken:
                raise AssayError(f"{error.what}; {source.broken}", where=error.where, fix=FETCH_AGAIN) from None
            raise
    tally = log.tally
    return FaultsAnswer(
        faults=collector.faults(),
        lines=tally.lines,
        unread=tally.unreadable,
        uncounted=tally.uncounted[:SHOWN_LENGTH],
        broken=source.broken,
    )


def collect_log_faults(log: LogReader, collector: LogFaultCollector, catalog: FaultCatalog) -> None:
    """Add every fault in the messages of a log to the collector. What cannot be counted is noted in the log's tally."""
    from assay.model.faults.bmc_events import find_event_fault
    from assay.model.faults.sightings import SplitMessages, find_nvlink_code

    matcher, split = catalog.kernel_log_matcher, defaultdict[str, SplitMessages](SplitMessages)
    for read in log.messages():
        if log.is_bmc_log and (fault := find_event_fault(catalog, read.message_id, read.text, read.severity)):
            collector.add(fault[0], fault[1] or read.part, read)
            continue
        if read.is_cut:
            log.tally.note_uncounted(read.text)
            continue
        message = split[read.host].complete(read)
        mentions = matcher.find_faults(message.text)
        if log.is_uncounted(message, mentions):
            log.tally.note_uncounted(message.text)
            continue
        for mention in mentions:
            code = find_nvlink_code(catalog, mention, message.text)
            collector.add(mention.name, mention.part or mention.pci, message, code)
