"""`assay faults FILE`: what a kernel's log or a BMC's event log tells of faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Format
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.lifecycle.stream import Stream
    from assay.model.faults import FaultCatalog
    from assay.observe.logs.read import Log

app = typer.Typer(add_completion=False)
Where = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        help="The fleet repository whose fault catalogues judge; without one the one here, else what assay brings.",
        envvar="ASSAY_FLEET",
    ),
]


@app.command()
def faults(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The log, plain or gzipped; - is standard input.")],
    fleet: Where = None,
    format: Format = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Classify a kernel log (dmesg, /dev/kmsg, journalctl -k, syslog) or a BMC's event log (ipmitool sel, Redfish).

    Exit code 0: nothing asks for action on the node; 1: something does; 2: it could not be read.
    """
    document = told(file, catalog_for(fleet))
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False) if format == "json" else "\n".join(as_text(document)))
    raise typer.Exit(1 if any(fault["action"] != "none" for fault in document["faults"]) else 0)


def told(file: str, catalog: FaultCatalog) -> dict[str, Any]:
    """Return what a log tells: its `faults`, how many `lines` it has, and how many were `unread`. Raises Trouble."""
    from assay.lifecycle.stream import Stream
    from assay.observe.logs.opened import opened
    from assay.observe.logs.read import Log

    with opened(file) as (source, written):
        log = Log(source.read, catalog.recogniser, written, "standard input" if file == "-" else file)
        stream = Stream(catalog)
        _hear(log, stream, catalog)
    return {"faults": stream.faults(), "lines": log.tally.lines, "unread": log.tally.unread}


def _hear(log: Log, stream: Stream, catalog: FaultCatalog) -> None:
    from assay.lifecycle.sightings import in_event, sub_code

    for message in log.messages():
        if log.of_bmc:
            if name := in_event(catalog, message.message_id, message.text):
                stream.see(name, message.part, message.at, message.stamp, message.text)
            continue
        for found in catalog.recogniser.in_message(message.text):
            code = sub_code(catalog, found, message.text)
            part = found.part or found.pci
            stream.see(found.name, part, message.at, message.stamp, message.text, code, message.uptime_s)


def catalog_for(fleet: Path | None) -> FaultCatalog:
    """Return the catalogue of that fleet; without one, of the fleet around us, else the one that assay brings along."""
    from assay.model.faults import joined

    found = _catalogs(fleet if fleet is not None else Path())
    if fleet is not None and not found:
        raise Trouble("there is no fault catalogue", where=str(fleet / "specs"), fix="name a fleet repository")
    try:
        return joined(found or _catalogs(_brought_along()))
    except ValueError as error:
        raise Trouble(str(error), where=str((fleet or Path()) / "specs"), fix="`assay check` says where") from None


def _brought_along() -> Path:
    from assay.starter.make import example

    return example()


def _catalogs(root: Path) -> list[FaultCatalog]:
    """Return the fault catalogues of a fleet, none where there is no fleet. Raises Trouble for one that is wrong."""
    from assay.fleet.specs import read_specs
    from assay.fleet.tree import Folder
    from assay.model.faults import FaultCatalog

    specs, refused = read_specs(Folder(root.absolute()))
    for one in refused:
        if one.kind == "FaultCatalog" and one.problems:
            first = one.problems[0]
            raise Trouble(first.message, where=f"{root / first.where}", fix=first.fix)
    return [entry.spec for entry in specs if isinstance(entry.spec, FaultCatalog)]


def as_text(document: dict[str, Any]) -> list[str]:
    """Return what a log tells, for people."""
    lines = []
    for fault in document["faults"]:
        times = "once" if fault["count"] == 1 else f"{fault['count']} times"
        when = f", {fault['first']}" if fault["first"] else ""
        until = f" to {fault['last']}" if fault["last"] != fault["first"] else ""
        asks = "asks for nothing" if fault["action"] == "none" else f"asks for {fault['action']}"
        lines.append(f"{fault['fault']} on {fault['subject']}: {asks} ({fault['class']}, {fault['severity']})")
        lines.append(f"  {times}{when}{until}{_repeats(fault)}")
        lines.append(f"  {fault['because']}")
        if fault["investigate"]:
            lines.append(f"  look at: {fault['investigate']}")
    asking = sum(fault["action"] != "none" for fault in document["faults"])
    unread = f", {document['unread']:,} of them unread" if document["unread"] else ""
    found = f"faults: {len(document['faults'])}, asking for action: {asking}" if document["faults"] else "no fault"
    return [*lines, f"lines: {document['lines']:,}{unread}; {found}"]


def _repeats(fault: dict[str, Any]) -> str:
    return f" ({fault['lines']:,} lines)" if fault["lines"] != fault["count"] else ""
