"""`assay faults FILE`: the faults in a kernel log or in a BMC's event log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import OptionalFleetDir, OutputFormat, argument, option
from assay.cli.workspace import load_surrounding_catalog
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.text.lists import format_count
from assay.model.text.safe_text import escape_line

if TYPE_CHECKING:
    from assay.decide.faults.log_file_faults import FaultInLog, LogFaultCollector
    from assay.decide.faults.unjudged import UnjudgedForm
    from assay.model.specs.fault_catalog import FaultCatalog
    from assay.observe.logs.log_reader import LogReader


SHOWN_LENGTH = 200
MOST_SHOWN = 20
JUDGE = "give it to a class below `wordings`, or call it `noise`, in a fault catalogue (docs/faults.md)"
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
    not_judged: list[UnjudgedForm]
    """Errors of drivers that the fault catalogue watches and that no class has: neither faults nor health.

    With any, the exit code is 2, unless a fault asks for an action.
    """
    uncounted: str
    """The beginning of the first line that cannot be counted: it names a fault, or is of another log; "" without one.

    The exit code is then 2, unless a fault asks for an action.
    """
    broken: str
    """Why a packed file could not be unpacked to its end, so that the rest was not judged; "" if it could.

    The exit code is then 2, unless a fault asks for an action.
    """


@fact
class UnknownErrorsAnswer:
    """The errors on the nodes of the fleet that no class of the fault catalogue has."""

    not_judged: list[UnjudgedForm]
    """By form: first what came from most nodes. With any, the exit code is 2."""
    nodes: int
    """How many nodes the ledger has."""


def faults(
    file: Annotated[str, argument("[FILE]", "The log, plain or packed (gzip). - is standard input.")] = "",
    unknown: Annotated[bool, option("--unknown", "List the errors on the fleet's nodes that no class has.")] = False,
    fleet: OptionalFleetDir = None,
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Find the faults in a kernel log or in a BMC's event log, by the fault catalogue.

    Kernel logs: dmesg, journalctl, syslog, and whatever wraps their lines (JSON, containers, several hosts).
    Event logs: ipmitool sel, ipmi-sel, racadm, Redfish. The format is detected.

    Exit codes: 0 no fault needs an action on the node; 1 some faults do; 2 the log is empty or cannot be read to its
    end, or a line in it names a fault that cannot be counted, is of another log, or is an error that nobody judged.
    """
    if unknown == bool(file):
        raise AssayError("name a log, or ask for the fleet", fix="assay faults FILE, or assay faults --unknown")
    if unknown:
        show_unknown_errors(fleet or Path(), format)
        return
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
    if document.not_judged:
        raise AssayError(
            f"holds errors that nobody has judged, such as {document.not_judged[0].example[:SHOWN_LENGTH]!r}",
            where=where,
            fix=JUDGE,
        )


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
            lines.append(f"  do: {fault.investigate}")
    acting = sum(fault.action != "none" for fault in document.faults)
    unread = f", {document.unread:,} of them unreadable" if document.unread else ""
    none = "a line that cannot be counted" if document.uncounted else "no fault"
    none = "nothing that a class has" if document.not_judged and not document.uncounted else none
    total = f"faults: {len(document.faults)}, with an action: {acting}" if document.faults else none
    if below := sum(fault.below_limit for fault in document.faults):
        total += f", counted but below their limit: {below}"
    lines += format_unjudged(document.not_judged)
    lines.append(f"lines: {document.lines:,}{unread}; {total}{' so far' if document.broken else ''}")
    return [*lines, f"read in part only: {document.broken}"] if document.broken else lines


def format_unjudged(forms: Sequence[UnjudgedForm]) -> list[str]:
    """Return the lines for errors that no class has, none if there are none."""
    if not forms:
        return []
    shown = [
        f"  {form.count:,} × {escape_line(form.form[:SHOWN_LENGTH])} ({form.subsystem}{format_hosts(form.hosts)})"
        for form in forms[:MOST_SHOWN]
    ]
    further = [f"  and {len(forms) - MOST_SHOWN} more; --format json has all"] if len(forms) > MOST_SHOWN else []
    errors = format_count(sum(form.count for form in forms), "error")
    total = f"not judged: {errors} in {format_count(len(forms), 'form')}, which no class has:"
    return [total, *shown, *further]


def show_unknown_errors(fleet: Path, form: OutputFormat) -> None:
    """Print the errors that no class has, of the whole fleet. Raises typer.Exit with 2 if there are any."""
    from assay.cli.workspace import Workspace
    from assay.decide.faults.unjudged import count_fleet

    workspace = Workspace(fleet.resolve())
    states = workspace.read_node_states()
    document = UnknownErrorsAnswer(count_fleet(workspace.fleet.fault_catalog, states), len(states))
    lines = [*format_unjudged(document.not_judged), f"to judge one, {JUDGE}"]
    print_answer(document, form, lines if document.not_judged else ["every error of a watched driver has a class"])
    if document.not_judged:
        raise typer.Exit(2)


def format_hosts(hosts: Sequence[str]) -> str:
    """Return the hosts for a line of the list, "" where no host is known."""
    return f", {len(hosts):,} nodes such as {hosts[0]}" if len(hosts) > 1 else f", {hosts[0]}" if hosts else ""


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
        not_judged=collector.unjudged.list_forms(),
        uncounted=tally.uncounted[:SHOWN_LENGTH],
        broken=source.broken,
    )


def collect_log_faults(log: LogReader, collector: LogFaultCollector, catalog: FaultCatalog) -> None:
    """Add every fault in the messages of a log to the collector, and every error that no class has.

    What cannot be counted is noted in the log's tally.
    """
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
            collector.add(mention.name, mention.part or mention.pci, message, code, mention.errors)
        if message.is_of_kernel and (subsystem := matcher.find_unjudged(message.text, message.level)):
            collector.unjudged.add(subsystem, message.text, message.host, message.lines)
