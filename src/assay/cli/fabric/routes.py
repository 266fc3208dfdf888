"""`assay fabric routes`: checks the forwarding tables of the switches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.fabric.design_draft import read_dump
from assay.model.errors import AssayError


def routes(
    tables: Annotated[
        Path, typer.Option("--tables", metavar="FILE", help="The output of dump_fts; - is stdin.", show_default=False)
    ],
    dump: Annotated[
        Path,
        typer.Option("--from", metavar="FILE", help="The output of ibnetdiscover.", show_default=False),
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
    if not found:
        raise AssayError("there is no forwarding table", where=str(tables), fix="give the output of dump_fts")
    report = check_routing(discovery, found, read_addresses(text))
    print("\n".join(format_routing(report, discovery)))  # noqa: T201
    raise typer.Exit(1 if report.unreachable or report.credit_loop else 2 if report.unread or discovery.partial else 0)
