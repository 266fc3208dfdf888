"""`assay fabric routes`: checks the forwarding tables of the switches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.fabric.dump_file import read_dump
from assay.model.errors import AssayError


def routes(
    tables: Annotated[
        Path,
        typer.Option(
            "--tables",
            metavar="FILE",
            help="The output of dump_fts, ibdiagnet2.fdbs, or OpenSM's opensm.fdbs or opensm-lfts.dump; - is stdin.",
            show_default=False,
        ),
    ],
    dump: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="FILE",
            help="The output of ibnetdiscover, or ibdiagnet's db_csv, net_dump or .lst.",
            show_default=False,
        ),
    ],
) -> None:
    """Check the routes: adapters that some switch cannot reach, and credit loops.

    Exit codes: 0 all are well; 1 some are not; 2 the tables or the discovery are incomplete or unreadable.
    """
    from assay.fabric.health.routing_check import check_routing, format_routing
    from assay.fabric.readers.format_detection import read_topology
    from assay.fabric.readers.forwarding_tables import read_forwarding_tables
    from assay.fabric.readers.lid_addresses import read_addresses

    text = read_dump(dump)
    discovery = read_topology(text)
    found = read_forwarding_tables(read_dump(tables))
    if not found.tables and not found.problems:
        raise AssayError(
            "there is no forwarding table", where=str(tables), fix="give the output of dump_fts, or ibdiagnet2.fdbs"
        )
    report = check_routing(discovery, found.tables, read_addresses(text))
    print(  # noqa: T201
        "\n".join((*format_routing(report, discovery), *(f"not known: {what}" for what in found.problems)))
    )
    partial = report.partial or bool(found.problems) or discovery.partial
    raise typer.Exit(1 if report.unreachable or report.credit_loop else 2 if partial else 0)
