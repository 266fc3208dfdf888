"""`assay serve`: listen to the nodes' agents, and turn what they deliver into faults at once."""

from __future__ import annotations

import ipaddress
import sys
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.desk import Desk, FleetDir
from assay.model.errors import Trouble

app = typer.Typer(add_completion=False, help="Listen to the nodes' agents.")

Host = Annotated[str, typer.Option("--host", help="The address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one and says which.")]
Cert = Annotated[Path | None, typer.Option("--cert", help="The certificate to show, with its chain (PEM).")]
Key = Annotated[Path | None, typer.Option("--key", help="Its private key (PEM), where it is not in the same file.")]


@app.command()
def serve(
    host: Host = "127.0.0.1", port: Port = 8443, cert: Cert = None, key: Key = None, fleet: FleetDir = Path()
) -> None:
    """Take in what agents deliver, until SIGTERM or Ctrl-C. Plain HTTP is for this machine only."""
    from assay.controller.desk import Desk as Work
    from assay.observe.store import EvidenceStore
    from assay.web.serve import Door
    from assay.web.serve import serve as listen

    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise Trouble(f"{host!r} is no address", fix="give an IP address of this machine, such as 0.0.0.0") from None
    desk = Desk(fleet.resolve())
    work = Work(desk.fleet, desk.ledger, EvidenceStore(desk.evidence), desk.clock, desk.home, desk.reports)
    listen(work, Door(host, port, cert, key), _tell)


def _tell(text: str) -> None:
    from assay.model.secrets import hidden

    print(f"assay serve: {hidden(text)}", file=sys.stderr, flush=True)  # noqa: T201 — for people
