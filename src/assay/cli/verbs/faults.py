"""`assay faults FILE`: what a kernel's log or a BMC's event log tells of faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.workspace import OutputFormat
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.lifecycle.faults.log_file_faults import LogFaultCollector
    from assay.model.specs.fault_catalog import FaultCatalog
    from assay.observe.logs.log_reader import LogReader

faults_app = typer.Typer(add_completion=False)
CatalogFleetOption = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        help="The fleet repository whose fault catalogues judge; without one the one here, else what assay brings.",
        envvar="ASSAY_FLEET",
    ),
]


@faults_app.command()
def faults(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The log, plain or gzipped; - is standard input.")],
    fleet: CatalogFleetOption = None,
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Classify a kernel log (dmesg, /dev/kmsg, journalctl -k, syslog) or a BMC's event log (ipmitool sel, Redfish).

    Exit code 0: nothing asks for action on the node; 1: something does; 2: it could not be read.
    """
    document = classify_log(file, load_catalog_for(fleet))
    typer.echo(
        json.dumps(document, indent=1, ensure_ascii=False)
        if format == "json"
        else "\n".join(format_faults_text(document))
    )
    raise typer.Exit(1 if any(fault["action"] != "none" for fault in document["faults"]) else 0)


def classify_log(file: str, catalog: FaultCatalog) -> dict[str, Any]:
    """Return what a log tells: its `faults`, how many `lines` it has, and how many were `unread`. Raises Trouble."""
    from assay.lifecycle.faults.log_file_faults import LogFaultCollector
    from assay.observe.logs.log_reader import LogReader, open_log

    with open_log(file) as (source, written):
        log = LogReader(source.read, catalog.kernel_log_matcher, written, "standard input" if file == "-" else file)
        stream = LogFaultCollector(catalog)
        _feed_messages(log, stream, catalog)
    return {"faults": stream.faults(), "lines": log.tally.lines, "unread": log.tally.unreadable}


def _feed_messages(log: LogReader, stream: LogFaultCollector, catalog: FaultCatalog) -> None:
    from assay.lifecycle.faults.sightings import find_nvlink_code, match_sel_event

    for message in log.messages():
        if log.is_bmc_log:
            if name := match_sel_event(catalog, message.message_id, message.text):
                stream.add(name, message.part, message.at, message.stamp, message.text)
            continue
        for found in catalog.kernel_log_matcher.find_faults(message.text):
            code = find_nvlink_code(catalog, found, message.text)
            part = found.part or found.pci
            stream.add(found.name, part, message.at, message.stamp, message.text, code, message.uptime_s)


def load_catalog_for(fleet: Path | None) -> FaultCatalog:
    """Return the catalogue of that fleet; without one, of the fleet around us, else the one that assay brings along."""
    from assay.model.specs.fault_catalog import merge_catalogs

    found = _catalogs(fleet if fleet is not None else Path())
    if fleet is not None and not found:
        raise AssayError("there is no fault catalogue", where=str(fleet / "specs"), fix="name a fleet repository")
    try:
        return merge_catalogs(found or _catalogs(_bundled_fleet()))
    except ValueError as error:
        raise AssayError(str(error), where=str((fleet or Path()) / "specs"), fix="`assay check` says where") from None


def _bundled_fleet() -> Path:
    from assay.starter.new_repository import find_example

    return find_example()


def _catalogs(root: Path) -> list[FaultCatalog]:
    """Return the fault catalogues of a fleet, none where there is no fleet. Raises Trouble for one that is wrong."""
    from assay.fleet.repository_tree import WorkingFolder
    from assay.fleet.spec_reader import read_specs
    from assay.model.specs.fault_catalog import FaultCatalog

    specs, refused = read_specs(WorkingFolder(root.absolute()))
    for one in refused:
        if one.kind == "FaultCatalog" and one.problems:
            first = one.problems[0]
            raise AssayError(first.message, where=f"{root / first.where}", fix=first.fix)
    return [entry.spec for entry in specs if isinstance(entry.spec, FaultCatalog)]


def format_faults_text(document: dict[str, Any]) -> list[str]:
    """Return what a log tells, for people."""
    lines = []
    for fault in document["faults"]:
        times = "once" if fault["count"] == 1 else f"{fault['count']} times"
        when = f", {fault['first']}" if fault["first"] else ""
        until = f" to {fault['last']}" if fault["last"] != fault["first"] else ""
        asks = "asks for nothing" if fault["action"] == "none" else f"asks for {fault['action']}"
        lines.append(f"{fault['fault']} on {fault['subject']}: {asks} ({fault['class']}, {fault['severity']})")
        lines.append(f"  {times}{when}{until}{_format_repeats(fault)}")
        lines.append(f"  {fault['because']}")
        if fault["investigate"]:
            lines.append(f"  look at: {fault['investigate']}")
    asking = sum(fault["action"] != "none" for fault in document["faults"])
    unread = f", {document['unread']:,} of them unread" if document["unread"] else ""
    found = f"faults: {len(document['faults'])}, asking for action: {asking}" if document["faults"] else "no fault"
    return [*lines, f"lines: {document['lines']:,}{unread}; {found}"]


def _format_repeats(fault: dict[str, Any]) -> str:
    return f" ({fault['lines']:,} lines)" if fault["lines"] != fault["count"] else ""
