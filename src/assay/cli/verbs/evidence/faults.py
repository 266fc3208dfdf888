"""`assay faults FILE`: the faults in a kernel log or in a BMC's event log."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from assay.cli.options import OptionalFleetDir, OutputFormat
from assay.cli.surrounding_fleet import load_surrounding_catalog

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
    from assay.controller.ingest.log_classification import classify_log

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
